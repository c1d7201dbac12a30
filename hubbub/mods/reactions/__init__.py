"""The mod `reactions`: emoji reactions to messages.

mod      operations and rows
schemas  inputs and outputs
"""
