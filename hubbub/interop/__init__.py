"""Doors for what speaks a standard: each an adapter above `hubbub.client`, each an extra.

mcp, openai, a2a, acp      one folder for each standard; `doors` opens those on the hub's port
asking, request_clients    questions of outsiders, and the clients that ask them
guest, answer, tools       agents whose turns another program takes
http, thread_memory        a request on a connection; what an agent remembers of its threads

Imports the client, `agents` and the protocol; only `doors` imports the hub.
"""
