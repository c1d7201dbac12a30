"""Adapters for standard protocols, built on `hubbub.client`. Each is an optional extra.

mcp, openai, a2a, acp      one package per standard; `doors` opens those on the hub's port
asking, request_clients    questions from outside, and the clients that ask them
guest, answer, tools       agents whose turns another program takes
http, thread_memory        an HTTP request and its response; per-thread memory of an agent

Imports the client, `agents` and the protocol; only `doors` imports the hub.
"""
