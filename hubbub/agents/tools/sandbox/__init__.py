"""Runs a tool function in a process of its own with few permissions.

process                 starts it, and waits for the answer
child, function_runner  that process: restricts itself, then runs the function
jail                    the restrictions, with Landlock and seccomp of Linux

docs/explanation/sandbox.md says what this protects against, and what not.
"""
