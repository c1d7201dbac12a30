"""The mod `search`: full-text search over messages, documents and files.

mod      the operation and the index of messages
schemas  inputs and outputs
"""
