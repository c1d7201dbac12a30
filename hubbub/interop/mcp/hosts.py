"""What to paste into the config of an MCP host, so that it joins a network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from pydantic import JsonValue

__all__ = ["HOSTS", "HostName", "McpHost", "pasted"]

HostName = Literal["claude", "cursor", "opencode", "vscode"]


@dataclass(frozen=True, slots=True)
class McpHost:
    """An MCP host, and where it reads of servers."""

    file: str
    section: str
    """The key under which servers stand."""


HOSTS: Mapping[HostName, McpHost] = MappingProxyType(
    {
        "claude": McpHost(".mcp.json of the project", "mcpServers"),
        "cursor": McpHost("~/.cursor/mcp.json", "mcpServers"),
        "opencode": McpHost("opencode.json of the project", "mcp"),
        "vscode": McpHost(".vscode/mcp.json of the project", "servers"),
    }
)
assert tuple(HOSTS) == get_args(HostName), "each has an entry"


def pasted(host: HostName, command: Sequence[str], env: Mapping[str, str]) -> str:
    """The JSON that has the host start this command as the server `hubbub`."""
    return json.dumps({HOSTS[host].section: {"hubbub": _server(host, command, env)}}, indent=2)


def _server(host: HostName, command: Sequence[str], env: Mapping[str, str]) -> JsonValue:
    if host == "opencode":
        return {"type": "local", "command": [*command], "environment": {**env}, "enabled": True}
    program, *arguments = command
    server: dict[str, JsonValue] = {"command": program, "args": [*arguments], "env": {**env}}
    return {"type": "stdio", **server} if host == "vscode" else server
