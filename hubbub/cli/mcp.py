"""`mcp`: a network as an MCP server, for Claude Code, Cursor, opencode, VS Code and the like."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, get_args

import typer
from pydantic import JsonValue

from hubbub.cli.connection import (
    AddressOption,
    NetworkTarget,
    TokenOption,
    joined,
    run_async,
)
from hubbub.errors import UserError
from hubbub.loading import missing_extra

__all__ = ["register"]

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


NameOption = Annotated[
    str | None,
    typer.Option(
        "--as", envvar="HUBBUB_AS", help="The agent that the host is.", show_default=False
    ),
]
ToolsOption = Annotated[
    list[str] | None,
    typer.Option("--tool", help="An operation as a tool; left out: all."),
]


def register(group: typer.Typer, word: str) -> None:
    made = typer.Typer(invoke_without_command=True, no_args_is_help=False)
    made.callback()(serve)
    made.command("config")(config)
    group.add_typer(made, name=word, rich_help_panel=None)


def serve(
    context: typer.Context,
    name: NameOption = None,
    tool: ToolsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Join a network as an agent, and serve it to an MCP host on stdin and stdout."""
    if context.invoked_subcommand is not None:
        return
    _needs_extra()
    if name is None:
        raise UserError(
            "say who the host is: --as claude; `hubbub mcp config` prints what to paste"
        )
    run_async(_serve(NetworkTarget(address, token), name, tool))


async def _serve(target: NetworkTarget, name: str, tools: list[str] | None) -> None:
    from hubbub.interop.mcp.server import serve_stdio

    async with joined(target, name, agent=True) as client:
        await serve_stdio(client, tools)


def config(
    host: Annotated[str, typer.Argument(help="claude, cursor, opencode or vscode.")],
    name: NameOption = None,
    address: AddressOption = None,
) -> None:
    """Print what to paste into a host's config."""
    from hubbub.client.runfile import find_network
    from hubbub.config.problems import nearest

    known = {each: entry for each, entry in HOSTS.items() if each == host}
    if not known:
        raise UserError(f"no host is called {host!r}{nearest(host, HOSTS)}")
    ((which, entry),) = known.items()
    me = name or host
    command = [str(Path(sys.executable).with_name("hubbub")), "mcp", "--as", me]
    command += ["--address", find_network(address).url] if address is not None else []
    typer.echo(pasted(which, command, {}))
    typer.echo(f"This goes into {entry.file}.", err=True)
    typer.echo(
        f"Where the network wants tokens: `hubbub tokens add {me}`, and the token as HUBBUB_TOKEN "
        "in its environment.",
        err=True,
    )


def _needs_extra() -> None:
    if (wrong := missing_extra("mcp")) is not None:
        raise UserError(wrong)
