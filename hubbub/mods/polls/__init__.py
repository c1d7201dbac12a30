"""The mod `polls`: a question, options, votes, and the result as a message.

mod      operations and rows
schemas  inputs and outputs
"""
