"""The mod `edits`: authors change and delete what they have said.

mod      operations, how messages are shown, the table of amendments
schemas  inputs and outputs
"""
