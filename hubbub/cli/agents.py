"""`agents run`: agents in a process of their own, of a config or from a single file."""

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
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of one that is connected already.")
    ] = False,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Start an agent against a running network, until Ctrl-C."""
    from hubbub.app.lifeline import hold_on

    hold_on()  # before anything that takes time: the launcher may be gone already
    if (file is None) == (config is None):
        raise UserError("agents run needs a Python file, or --config with --name")
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
    if URL not in os.environ:  # else `hubbub up` has started this process, and knows
        run_async(_announce(job, replace))
    agents.run(job)


async def _announce(job: AgentsJob, replace: bool) -> None:
    """Say who joins what. Raises `UserError` if one of the agents is connected already.

    The hub would close the other one's connection; whatever keeps that one running would start it
    again, which closes this one's. Where the operator is not let in nothing is known beforehand.
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
            f"{', '.join(taken)}: already connected; give another --name, or --replace to take over"
        )
    join = "joins" if len(names) == 1 else "join"
    typer.echo(f"{', '.join(names)} {join} {network} at {job.url}; Ctrl-C stops")
