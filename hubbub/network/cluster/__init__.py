"""Beyond one process: gateways hold the sockets of participants, and one hub owns the network.

    client <-> gateway: HeldSession <-> link <-> owner: RemoteSession <-> the hub

A `HeldSession` is a session's stream: its cursor, its window, its place in the log. A
`RemoteSession` is what the hub knows of it: who it is, and what it asks. When the owner goes away
the first half stays, and finds itself another second half.

held, holder, uplink, serving  a gateway: its sessions, its way to the owner, its port
owner                          the hub's side
messages, link                 what they send each other
placement                      which node should own which network
"""
