"""The mod `tasks`: boards with tasks that people and agents claim and finish.

mod         operations, and boards as Markdown
schemas     inputs, outputs, and the state machine; pure
repository  tables, dependencies, overdue tasks and absent agents
"""
