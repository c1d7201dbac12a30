"""Agents whose handlers are Python.

agent, scope  `Agent`, which people derive from; the cause of what a handler sends
handlers      the backend that runs them
link          what they ask and delegate, until it is answered
"""
