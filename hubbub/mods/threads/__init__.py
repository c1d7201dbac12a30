"""The mod `threads`: titles, what is resolved, who follows and mutes, and quotes that are true.

mod         settings, operations, hooks
schemas     inputs and outputs
repository  tables, and what memory has of them
"""
