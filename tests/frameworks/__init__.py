"""Agents of other frameworks with their real packages: `make test-frameworks`."""
