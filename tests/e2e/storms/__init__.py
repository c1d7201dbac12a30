"""Storms: agents that set each other going, in whole networks. Each must end."""
