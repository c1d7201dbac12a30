"""The mod `files`: what belongs to messages and is kept beside the log."""
