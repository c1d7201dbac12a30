"""The mod `digest`: what happened since the last visit.

mod      operations: news of threads, what waits, what was decided
schemas  inputs and outputs
writer   summaries by a model, within a budget of a day
"""
