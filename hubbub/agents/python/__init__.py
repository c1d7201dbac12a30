"""Agents whose handlers are Python.

agent     `Agent`, which people derive from
handlers  the backend that runs them
link      what they send, ask and delegate, and its cause
"""
