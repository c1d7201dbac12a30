"""`mcp`: a network as an MCP server, for Claude Code, Cursor, opencode, VS Code and the like."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

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
    from hubbub.interop.mcp.stdio import serve_stdio

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
    from hubbub.interop.mcp.hosts import HOSTS, pasted

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
