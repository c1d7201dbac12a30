"""The turns of agents: begun, recorded step by step, ended by themselves or in their place.

turns      the service, with its operations
ending     ends turns that people stop, or whose agents are gone
notices    what the threads are told of that
questions  what agents pass on, followed until somebody answers, or nobody will
"""
