"""The hub: one log, what gets into it, who receives it, and who acts.

hub, kernel, service, gateway         how it is put together
server, connection, session           a participant's socket; `admission`: who may join
calls, writes, log, fanout            the path of a message, in and out
wakes, routing, targets, policy       what is decided of it; `trace_context`: what it belongs to
state, threads, marks, limits         what is known in memory
running_turns, standing_stops         and of agents; `queues`: wakes that wait
records, stored, queries, ports       what goes to the store and comes back; `store` keeps it
http, path_switch, exposition         what else the port answers
services, mods, cluster               capabilities, extensions, more processes than one

Imports the protocol, the config and `hubbub.mods`; never the client or agents.
"""
