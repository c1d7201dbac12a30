"""Runs a tool function in a process of its own with few permissions.

process                 starts it, and waits for the answer; `messages` is what they say
child, function_runner  that process: restricts itself, then runs the function
jail                    the restrictions, with `landlock` and `seccomp` of Linux

docs/explanation/sandbox.md says what this protects against, and what not.
"""
