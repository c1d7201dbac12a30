"""How commands reach a network: which one, as whom, with which token."""

from __future__ import annotations

import asyncio
import getpass
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from hubbub.errors import ConnectionLost, HubbubError
from hubbub.protocol.frames import Cursor
from hubbub.protocol.messages import Kind

if TYPE_CHECKING:
    from hubbub.client import Client
    from hubbub.client.runfile import Address

__all__ = [
    "OPERATOR",
    "AddressOption",
    "AsOption",
    "Target",
    "TokenOption",
    "Unreachable",
    "ask",
    "default_person",
    "joined",
    "run_async",
]

OPERATOR = "operator"
"""The identity of commands that look after the network."""

AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        "-a",
        help="host:port, ws:// URL or name of a running network; left out: the one that runs here.",
        show_default=False,
    ),
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="HUBBUB_TOKEN",
        help="A token for the network; for one that runs here it is found by itself.",
        show_default=False,
    ),
]
AsOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        envvar="HUBBUB_AS",
        help="Who you are in the network; left out: its person, or your name here.",
        show_default=False,
    ),
]
T = TypeVar("T")


@dataclass(frozen=True)
class Target:
    """Which network, and what opens it."""

    address: str | None = None
    token: str | None = None


class Unreachable(HubbubError):
    """Nobody answers at the address. The text says what to do."""


@asynccontextmanager
async def joined(
    target: Target,
    person: str | None = None,
    *,
    observe: bool = False,
    cursor: Cursor | None = None,
) -> AsyncIterator[Client]:
    """A client in the network: as `person`, or as the operator.

    Raises Unreachable, or OperationError when the hub refuses.
    """
    from hubbub.client import Client, WebSocketTransport
    from hubbub.client.runfile import find_network

    place = find_network(target.address)
    name, kind = _identity(person)
    client = Client(
        WebSocketTransport(place.url),
        name,
        kind,
        token=target.token or place.tokens.get(name),
        observe=observe,
        cursor=cursor,
    )
    try:
        await client.__aenter__()
    except ConnectionLost as error:
        raise Unreachable(_unreachable(place, error)) from error
    try:
        yield client
    finally:
        await client.__aexit__(None, None, None)


def _identity(person: str | None) -> tuple[str, Kind]:
    return (OPERATOR, "service") if person is None else (person, "human")


def _unreachable(place: Address, error: ConnectionLost) -> str:
    why = f": {error.reason}" if error.reason else ""
    return (
        f"no network answers at {place.url}{why}; start one with `hubbub up`, or name another "
        "with --address"
    )


async def ask(target: Target, operation: str, person: str | None = None, **args: object) -> object:
    """Join, call one operation, leave."""
    async with joined(target, person) as client:
        # `cid` is no argument of any operation: each call gets a fresh one.
        return await client.call(operation, cid=None, **args)


def default_person(target: Target, name: str | None) -> str:
    """Who somebody is that did not say: as in `hubbub chat`."""
    from hubbub.cli.chat import default_name
    from hubbub.client.runfile import find_network

    if name:
        return name
    try:
        here = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, in a container for example
        here = "guest"
    return default_name(find_network(target.address).humans, here)


def run_async(work: Coroutine[None, None, T]) -> T:
    """Run a command's coroutine to its end."""
    if os.environ.get("HUBBUB_DEBUG"):
        return asyncio.run(work, debug=True)
    return asyncio.run(work)
