"""The mod `threads`: titles, what is resolved, followed and muted, true quotes.

mod      settings, operations, hooks, tables
schemas  inputs and outputs
"""
