"""Multiple processes: gateways hold the sockets of participants, and one hub owns the network.

    client <-> gateway: HeldSession <-> link <-> owner: RemoteSession <-> the hub

A `HeldSession` is a session's stream: its cursor, its window, its position in the log. A
`RemoteSession` is the hub's half: identity and calls. When the owner changes, the first half stays
and connects to a new second half.

held, holder, uplink, serving  a gateway: its sessions, its connection to the owner, its port
owner                          the hub's side
messages, link                 the messages between them
placement                      which node should own which network
"""
