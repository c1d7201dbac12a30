"""Boards with tasks."""
