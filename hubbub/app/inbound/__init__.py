"""Webhooks that come in: a process of its own, so that the hub itself takes no requests."""
