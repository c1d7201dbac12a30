"""The mod `search`: full-text search over messages, documents and files."""
