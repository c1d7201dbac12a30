"""The mod `polls`: questions with options to vote on, and the result as a message.

mod      operations and rows
schemas  inputs and outputs
"""
