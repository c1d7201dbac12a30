"""The mod `directory`: who can do what."""
