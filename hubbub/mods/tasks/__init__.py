"""The mod `tasks`: boards with tasks that people and agents claim and finish.

mod         operations, and boards as Markdown
schemas     inputs and outputs
repository  tables, dependencies
states      what leads from one state to another; pure
duties      what is overdue, and what absent agents hold
"""
