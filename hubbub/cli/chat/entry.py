"""`hubbub chat`: find the network, join as a person, chat."""

from __future__ import annotations

import asyncio
import getpass
import re
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack

from hubbub.cli.chat.conversation import Console, run_chat
from hubbub.cli.chat.pipe import PipeConsole
from hubbub.client import Client, WebSocketTransport, find_network
from hubbub.errors import ConnectionLost, OperationError, UserError
from hubbub.protocol.thread_ids import is_participant_id

__all__ = ["chat", "default_name"]


def chat(address: str | None = None, name: str | None = None, token: str | None = None) -> int:
    """Chat in the network at `address` (host:port, URL or name; None: the one that runs here).

    `name` defaults to a person of the network, else to this user; `token` to the one in the run
    file. Returns an exit code. Raises `UserError` when the input is wrong: no such network, not a
    name, a token that does not prove it.
    """
    found = find_network(address)
    name = name or default_name(found.humans, getpass.getuser())
    if not is_participant_id(name):
        raise UserError(f"{name!r} cannot be a name: letters, digits, - and _, at most 64")
    client = Client(
        WebSocketTransport(found.url), name, "human", token=token or found.tokens.get(name)
    )
    try:
        return asyncio.run(_chat(client, found.url))
    except KeyboardInterrupt:
        return 130


def default_name(humans: Sequence[str], user: str) -> str:
    """Who this probably is: a person whom the config names, else the user's name made legal."""
    if humans:
        return humans[0]
    legal = re.sub(r"[^A-Za-z0-9_-]+", "-", user).strip("-")[:64]
    return legal if is_participant_id(legal) else "guest"


async def _chat(client: Client, url: str) -> int:
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(client)
        except OperationError as exc:
            raise UserError(exc.message) from exc
        except ConnectionLost as exc:
            place = url.removeprefix("ws://")
            print(f"cannot join at {place}: {exc.reason or exc}", file=sys.stderr)  # noqa: T201
            return 1
        return await run_chat(client, _console())


def _console() -> Console:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return PipeConsole(sys.stdin.fileno(), sys.stdout)
    from hubbub.cli.chat.terminal import TerminalConsole

    return TerminalConsole()
