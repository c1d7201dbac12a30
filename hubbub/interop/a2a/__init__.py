"""A2A 1.0 in both directions: serves this network's agents, and lets remote agents take part.

door           authentication, routing and agent cards
wire           the JSON-RPC and REST bindings, to and from the SDK's types
tasks          tasks as requests of the hub
parts          message parts as text and attachments
push           push notifications of task updates
remote         a remote agent takes turns in this network
task_progress  the state of a task at a remote agent
peer           the client for a remote agent
"""
