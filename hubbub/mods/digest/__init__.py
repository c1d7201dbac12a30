"""The mod `digest`: what happened since the last visit."""
