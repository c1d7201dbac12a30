"""The mod `threads`: titles, resolving, following and muting, checked quotes.

mod      settings, operations, hooks, tables
schemas  inputs and outputs
"""
