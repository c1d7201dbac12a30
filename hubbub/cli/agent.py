"""`agent run`: agents in a process of their own, of a config or from a single file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.joining import AddressOption, TokenOption
from hubbub.cli.output import help_if_alone
from hubbub.errors import UserError

__all__ = ["register"]

group = typer.Typer(
    help="Run agents against a running network.",
    invoke_without_command=True,
    callback=help_if_alone,
)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="agent")


@group.command()
def run(
    file: Annotated[
        Path | None, typer.Argument(help="A Python file with an agent class.", show_default=False)
    ] = None,
    class_: Annotated[
        str | None,
        typer.Option("--class", help="Its class; left out: the only one in the file."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Run agents of this network's YAML file instead."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="The agent's name; with --config may be given several times."),
    ] = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Start an agent against a running network, until Ctrl-C."""
    from hubbub.app.lifeline import hold_on

    hold_on()  # before anything that takes time: the launcher may be gone already
    if (file is None) == (config is None):
        raise UserError("agent run needs a Python file, or --config with --name")
    from hubbub.app import agents

    names = name or []
    if config is not None:
        job = agents.from_config(config, names, address, token, os.environ)
    else:
        assert file is not None
        job = agents.from_file(file, class_, names, address, token)
    agents.run(job)
