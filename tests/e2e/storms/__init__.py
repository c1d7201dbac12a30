"""Storms: agents that set each other going, in networks of real processes. Each must end."""
