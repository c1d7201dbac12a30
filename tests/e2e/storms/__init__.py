"""Storms: whole networks of agents that keep waking each other. Every storm must end."""
