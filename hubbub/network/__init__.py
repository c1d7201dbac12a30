"""The hub: one log, the path into it, delivery to recipients, and wakes of agents.

hub, kernel, service, gateway         how the hub is assembled
server, connection, session           a participant's socket; `admission`: joining
calls, writes, log, fanout            the path of a message, in and out
wakes, routing, targets, policy       decisions about it; `trace_context`: its interaction
state, threads, marks, limits         state in memory
running_turns, standing_stops         state of agents; `queues`: pending wakes
records, stored, queries, ports       the interface to the store; `store` implements it
http, path_switch, exposition         other requests to the port
services, mods, cluster               capabilities, extensions, several processes

Imports the protocol, the config and `hubbub.mods`; never the client or agents.
"""
