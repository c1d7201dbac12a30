"""Agents whose handlers are Python."""
