"""`acp`: serve an agent to an editor over the Agent Client Protocol."""

from __future__ import annotations

import os
import stat
import sys
from typing import Annotated

import typer

from hubbub.cli.connection import (
    AddressOption,
    AsOption,
    NetworkTarget,
    TokenOption,
    current_token,
    default_person,
    run_async,
)
from hubbub.cli.operations import complete_agent
from hubbub.errors import OperationError, UserError
from hubbub.loading import missing_extra

__all__ = ["acp", "register"]


def register(app: typer.Typer, word: str) -> None:
    app.command(word)(acp)


def acp(
    agent: Annotated[
        str,
        typer.Option("--agent", help="The agent to talk to.", autocompletion=complete_agent),
    ],
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Serve an agent of the network to an editor on stdin and stdout."""
    if (problem := missing_extra("acp")) is not None:
        raise UserError(problem)
    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output")):
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise UserError(
                f"standard {name} is a file: an editor starts `hubbub acp` and connects it by pipes"
            )
    target = NetworkTarget(address, token)
    run_async(_serve(target, default_person(target, as_), agent))


async def _serve(target: NetworkTarget, person: str, agent: str) -> None:
    from hubbub.client import Client, ClientOptions, WebSocketTransport, find_network
    from hubbub.interop.acp.editor import serve_editor
    from hubbub.interop.asking.question import QuestionFailed

    network = find_network(target.address)
    client = Client(
        WebSocketTransport(*network.urls),
        person,
        "human",
        token=current_token(network, person, target.token),
        cursor="latest",
        options=ClientOptions(schemas=False),
    )
    try:
        await serve_editor(client, agent)
    except (QuestionFailed, OperationError) as error:
        raise UserError(error.message) from error
