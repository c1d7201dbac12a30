"""The mod `tasks`: boards with tasks that people and agents claim and finish.

mod         operations, and boards as Markdown
schemas     inputs, outputs, and what leads from one state to another; pure
repository  tables, dependencies; what is overdue, and what absent agents hold
"""
