"""The mod `schedule`: reminders that come once, or again and again."""
