"""The mod `documents`: shared Markdown with versions."""
