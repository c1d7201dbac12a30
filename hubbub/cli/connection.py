"""How commands reach a network: address, identity, token."""

from __future__ import annotations

import asyncio
import getpass
import os
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from hubbub.errors import ConnectionLost, HubbubError, OperationError, UserError
from hubbub.people.names import check_name, default_name
from hubbub.protocol.codes import ErrorCode
from hubbub.wording import did_you_mean

if TYPE_CHECKING:
    from hubbub.client import Client
    from hubbub.client.runfile import Address
    from hubbub.protocol.frames import Cursor
    from hubbub.protocol.messages import Kind, Participant

__all__ = [
    "OPERATOR",
    "AddressOption",
    "AsOption",
    "NetworkTarget",
    "TokenOption",
    "Unreachable",
    "ask",
    "check_known",
    "current_token",
    "default_person",
    "joined",
    "participants",
    "run_async",
]

OPERATOR = "operator"
"""The identity of commands that administer the network."""

_PAGE = re.compile(r"http(s?)://([^/?#]+)(?:[/?#].*)?\Z", re.IGNORECASE)


def _as_socket(address: str | None) -> str | None:
    """Accept the address of a network's page as the address of the network."""
    if address is None:
        return None
    pages = {each: _PAGE.match(each) for each in address.split(",")}
    return ",".join(f"ws{p[1].lower()}://{p[2]}" if p else each for each, p in pages.items())


AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        "-a",
        envvar="HUBBUB_ADDRESS",
        callback=_as_socket,
        help="host:port, URL or name of a running network. Default: the one on this machine.",
        show_default=False,
    ),
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="HUBBUB_TOKEN",
        help="A token for the network; not needed for a network of yours on this machine.",
        show_default=False,
    ),
]
AsOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        envvar="HUBBUB_AS",
        help="Your name in the network. Default: its only person, or your user name.",
        show_default=False,
    ),
]
T = TypeVar("T")


@dataclass(frozen=True)
class NetworkTarget:
    """A network's address and the token to join it."""

    address: str | None = None
    token: str | None = None

    @classmethod
    def of_environment(cls, address: str | None = None, token: str | None = None) -> NetworkTarget:
        """The target from the environment, for options that were not given."""
        address = address or os.environ.get("HUBBUB_ADDRESS")
        return cls(_as_socket(address), token or os.environ.get("HUBBUB_TOKEN"))


class Unreachable(HubbubError):
    """No hub answers at the address. The message says what to do."""


@asynccontextmanager
async def joined(
    target: NetworkTarget,
    person: str | None = None,
    *,
    observe: bool = False,
    agent: bool = False,
    cursor: Cursor | Literal["latest"] | None = None,
) -> AsyncIterator[Client]:
    """A client in the network: as `person`, or as the operator if None; with `agent`, as an agent
    of that name, with its tools. With the cursor `latest` it receives only new messages.

    Raises `Unreachable`, or `OperationError` if the hub refuses.
    """
    from hubbub.client import Client, ClientOptions, WebSocketTransport
    from hubbub.client.runfile import find_network

    place = find_network(target.address)
    name, kind = _identity(person)
    kind = "agent" if agent else kind
    client = Client(
        WebSocketTransport(*place.urls),
        name,
        kind,
        token=current_token(place, name, target.token),
        cursor=cursor,
        options=ClientOptions(observe=observe, schemas=agent),
    )
    try:
        await client.__aenter__()
    except ConnectionLost as error:
        why = f": {error.reason}" if error.reason else ""
        raise Unreachable(
            f"no network answers at {place.url}{why}; start one with `hubbub up`, or name another "
            "with --address"
        ) from error
    try:
        yield client
    finally:
        await client.__aexit__(None, None, None)


def current_token(place: Address, name: str, given: str | None) -> Callable[[], str | None]:
    """A function for the token that proves `name` at this moment: those of this machine's networks
    change at each start."""
    from hubbub.client.runfile import find_network

    def token() -> str | None:
        own = find_network(",".join(place.urls)).tokens.get(name)
        # A token in the environment is usually a person's.
        return (own or given) if name == OPERATOR else (given or own)

    return token


def _identity(person: str | None) -> tuple[str, Kind]:
    return (OPERATOR, "service") if person is None else (person, "human")


async def ask(
    target: NetworkTarget, operation: str, person: str | None = None, **args: object
) -> object:
    """Join, call one operation, leave."""
    async with joined(target, person) as client:
        # `cid` is no argument of any operation: each call gets a fresh one.
        return await client.call(operation, cid=None, **args)


async def participants(target: NetworkTarget) -> tuple[Participant, ...]:
    """All participants, as the operator sees them."""
    from hubbub.protocol.operations import Participants

    return Participants.model_validate(await ask(target, "list_participants")).participants


async def check_known(target: NetworkTarget, name: str) -> None:
    """Raise `UserError` if the network has no participant `name`.

    Joining creates a participant permanently, which commands that only read must not do. If the
    operator is not admitted, nothing is checked: a token has to prove the name anyway.
    """
    try:
        people = await participants(target)
    except OperationError as error:
        if error.code != ErrorCode.AUTH_FAILED:
            raise
        return
    names = [person.id for person in people]
    if name not in names:
        raise UserError(f"there is no participant {name!r}{did_you_mean(name, names)}")


def default_person(target: NetworkTarget, name: str | None) -> str:
    """The person's name, as `hubbub chat` chooses it. Raises `UserError` if it is no valid name."""
    from hubbub.client.runfile import find_network

    if name is not None:
        return check_name(name)
    try:
        here = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        here = "guest"
    return default_name(find_network(target.address).humans, here)


def run_async(work: Coroutine[None, None, T]) -> T:
    """Run a command's coroutine to its end."""
    if os.environ.get("HUBBUB_DEBUG"):
        return asyncio.run(work, debug=True)
    return asyncio.run(work)
