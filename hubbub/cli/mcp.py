"""`mcp`: a network as an MCP server, for hosts such as Claude Code, Cursor, opencode, VS Code."""

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
    """An MCP host, and the config file that lists its servers."""

    file: str
    section: str
    """The key that holds the servers."""


HOSTS: Mapping[HostName, McpHost] = MappingProxyType(
    {
        "claude": McpHost(".mcp.json of the project", "mcpServers"),
        "cursor": McpHost("~/.cursor/mcp.json", "mcpServers"),
        "opencode": McpHost("opencode.json of the project", "mcp"),
        "vscode": McpHost(".vscode/mcp.json of the project", "servers"),
    }
)
assert tuple(HOSTS) == get_args(HostName), "each host has an entry"


def host_config(host: HostName, command: Sequence[str], env: Mapping[str, str]) -> str:
    """The JSON config that makes the host start this command as the server `hubbub`."""
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
        "--as", envvar="HUBBUB_AS", help="The host's name as an agent.", show_default=False
    ),
]
ToolsOption = Annotated[
    list[str] | None,
    typer.Option("--tool", help="An operation to offer as a tool. Default: all."),
]


def register(group: typer.Typer, word: str) -> None:
    app = typer.Typer(invoke_without_command=True, no_args_is_help=False)
    app.callback()(serve)
    app.command("config")(config)
    group.add_typer(app, name=word, rich_help_panel=None)


def serve(
    context: typer.Context,
    name: NameOption = None,
    tool: ToolsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Join a network as an agent and serve its tools to an MCP host on stdin and stdout."""
    if context.invoked_subcommand is not None:
        return
    _check_extra()
    if name is None:
        raise UserError(
            "name the host's agent, for example --as claude; `hubbub mcp config` prints a config "
            "to paste"
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
    """Print the config to paste into an MCP host."""
    from hubbub.client.runfile import find_network
    from hubbub.config.problems import nearest

    matches = {each: entry for each, entry in HOSTS.items() if each == host}
    if not matches:
        raise UserError(f"there is no host {host!r}{nearest(host, HOSTS)}")
    ((which, entry),) = matches.items()
    me = name or host
    command = [str(Path(sys.executable).with_name("hubbub")), "mcp", "--as", me]
    command += ["--address", find_network(address).url] if address is not None else []
    typer.echo(host_config(which, command, {}))
    typer.echo(f"Add this to {entry.file}.", err=True)
    typer.echo(
        f"If the network requires tokens, create one with `hubbub tokens add {me}` and set it as "
        "HUBBUB_TOKEN in the host's environment.",
        err=True,
    )


def _check_extra() -> None:
    if (problem := missing_extra("mcp")) is not None:
        raise UserError(problem)
