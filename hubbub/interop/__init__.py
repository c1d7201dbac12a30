"""Doors for what speaks a standard: each an adapter above `hubbub.client`, each an extra."""
