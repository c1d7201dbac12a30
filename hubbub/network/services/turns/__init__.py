"""The turns of agents: their start, their steps, and their end, whether the agent or the hub ends
them.

turns      the service, with its operations
ending     ends turns that people stop, or whose agents are gone
notices    posts what happened in the threads concerned
questions  follows questions that agents pass on, until someone answers or no answer can come
"""
