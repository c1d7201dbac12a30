"""Running a tool function in a process of its own, with little that it may do.

docs/explanation/sandbox.md says what this protects from, and what not.
"""
