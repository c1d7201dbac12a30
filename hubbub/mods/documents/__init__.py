"""The mod `documents`: shared Markdown with versions.

mod         operations
schemas     inputs and outputs
repository  tables: versions, comments, full text
text        edits by line, differences and merges; pure
"""
