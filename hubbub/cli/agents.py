"""`agents run`: agents in a process of their own, from a config or a single file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.connection import AddressOption, NetworkTarget, TokenOption, joined, run_async
from hubbub.errors import OperationError, UserError
from hubbub.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from hubbub.app.agents import AgentsJob

__all__ = ["register"]


def register(group: typer.Typer, word: str) -> None:
    group.command()(run)


def run(
    file: Annotated[
        Path | None, typer.Argument(help="A Python file with an agent class.", show_default=False)
    ] = None,
    class_: Annotated[
        str | None,
        typer.Option("--class", help="The agent class. Default: the only one in the file."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Run agents of this network's YAML file instead."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="The agent's name; with --config, repeat for several agents."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an agent of this name that is connected.")
    ] = False,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Run an agent in a running network, until Ctrl-C."""
    from hubbub.app.lifeline import watch_parent

    watch_parent()  # before anything slow: the launcher may be gone already
    if (file is None) == (config is None):
        raise UserError("agents run takes either a Python file, or --config with --name")
    from hubbub.app.process import loading

    names = name or []
    with loading():
        from hubbub.app import agents
        from hubbub.app.lifeline import URL

        if config is not None:
            job = agents.from_config(config, names, address, token, os.environ)
        else:
            assert file is not None
            job = agents.from_file(file, class_, names, address, token)
    if URL not in os.environ:  # else `hubbub up` started this process
        run_async(_announce(job, replace))
    agents.run(job)


async def _announce(job: AgentsJob, replace: bool) -> None:
    """Print which agents join which network. Raises `UserError` if one is connected already.

    The hub would close the other process's connection; its supervisor would restart it, which would
    close ours. If the operator is not admitted, this cannot be checked.
    """
    names = [agent.name for agent in job.agents]
    network = "the network"
    try:
        async with joined(NetworkTarget(job.url)) as client:
            network = client.network
            here = {person.id for person in client.ready.participants if person.present}
    except OperationError as error:
        if error.code != ErrorCode.AUTH_FAILED:
            raise
        here = set()
    taken = [name for name in names if name in here]
    if taken and not replace:
        raise UserError(
            f"already connected: {', '.join(taken)}; choose another --name, or use --replace"
        )
    join = "joins" if len(names) == 1 else "join"
    typer.echo(f"{', '.join(names)} {join} {network} at {job.url}; Ctrl-C stops")
