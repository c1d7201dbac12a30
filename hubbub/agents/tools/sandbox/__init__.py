"""Runs a tool function in a process of its own with few permissions.

docs/explanation/sandbox.md says what this protects against, and what not.
"""
