"""The mod `transcript`: what was said, as a file, and back."""
