"""The mod `edits`: authors edit and delete their messages.

mod      operations, how messages are shown, the table of amendments
schemas  inputs and outputs
"""
