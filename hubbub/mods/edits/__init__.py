"""The mod `edits`: authors change and delete what they have said."""
