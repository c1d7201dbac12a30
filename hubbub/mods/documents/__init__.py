"""The mod `documents`: shared Markdown with versions.

mod      operations; tables of versions, comments, full text
schemas  inputs and outputs
text     edits by line, diffs and merges; pure
"""
