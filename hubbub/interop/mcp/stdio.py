"""`hubbub mcp`: the MCP server of one participant, for a host that starts it."""

from __future__ import annotations

from collections.abc import Sequence

from mcp.server.stdio import stdio_server

from hubbub.client import Client
from hubbub.interop.mcp.participant import McpParticipant
from hubbub.interop.mcp.server import ParticipantTools, mcp_server

__all__ = ["serve_stdio"]


async def serve_stdio(client: Client, tools: Sequence[str] | None = None) -> None:
    """Serve what `client` is connected as on stdin and stdout, until the host closes them. Raises
    `ConfigError` for a tool that the network does not have.
    """
    me = McpParticipant(client)
    server = mcp_server(me, ParticipantTools(me, tools))
    async with me.listening(), stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
