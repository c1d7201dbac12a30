"""The mod `digest`: new activity since the last visit.

mod      operations: new messages, waiting items, decisions
schemas  inputs and outputs
writer   summaries by a model, within a daily budget
"""
