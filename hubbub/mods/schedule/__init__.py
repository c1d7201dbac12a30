"""The mod `schedule`: reminders, once or repeating.

mod         settings and operations
schemas     inputs and outputs
repository  the table and the scheduler
when        parses times as people write them; pure
"""
