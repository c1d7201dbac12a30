"""The mod `schedule`: reminders that come once, or again and again.

mod         settings and operations
schemas     inputs and outputs
repository  the table, and what is said when
when        times as people write them; pure
"""
