"""Autobahn's WebSocket test suite against the hub's connections."""
