"""A2A 1.0 both ways: agents of this network for others, and agents of others in this network.

door    who may ask, and what is answered
wire    JSON-RPC and REST: a request and its answer, as the SDK's types
tasks   tasks are requests of the hub
parts   what messages are made of
cards   how an agent is described
push    what becomes of a task, sent to an address
remote  an agent elsewhere takes turns here
errand  what becomes of a message to it
peer    how it is asked
"""
