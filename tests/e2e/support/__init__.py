"""Shared by the end-to-end tests: hub processes, raw peers, load, broken frames."""
