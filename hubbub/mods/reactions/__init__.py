"""The mod `reactions`: an emoji under a message, in place of a message.

mod      operations and rows
schemas  inputs and outputs
"""
