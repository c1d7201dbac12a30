"""The mod `reactions`: an emoji under a message, in place of a message.

mod         operations
schemas     inputs and outputs
repository  the table, and counts
"""
