"""The mod `polls`: a question, options, votes, and the result as a message.

mod         operations and results
schemas     inputs and outputs
repository  tables
"""
