"""The WebSocket protocol's own cases against the hub's connections."""
