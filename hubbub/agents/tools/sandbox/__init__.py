"""Runs a tool function in a separate process with few permissions.

process                 starts the process, and waits for its answer
child, function_runner  the process: restricts itself, then runs the function
jail                    the restrictions, based on Linux's Landlock and seccomp

docs/explanation/sandbox.md describes the threat model.
"""
