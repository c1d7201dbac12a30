"""`hubbub chat`: find the network, join as a person, chat."""

from __future__ import annotations

import asyncio
import getpass
import sys
from contextlib import AsyncExitStack

from hubbub.cli.chat.conversation import Console, run_chat
from hubbub.cli.chat.pipe import PipeConsole
from hubbub.cli.joining import unreachable
from hubbub.cli.naming import check_name, default_name
from hubbub.client import Address, Client, WebSocketTransport, find_network
from hubbub.errors import ConnectionLost, OperationError, UserError

__all__ = ["chat"]


def chat(
    address: str | None = None,
    name: str | None = None,
    token: str | None = None,
    opening: str | None = None,
) -> int:
    """Chat in the network at `address` (host:port, URL or name; None: the one that runs here).

    `name` defaults to a person of the network, else to this user; `token` to the one in the run
    file; `opening` is the thread to begin in. Returns an exit code. Raises `UserError` when the
    input is wrong: no such network, not a name, a token that does not prove it; and `Unreachable`
    when nobody answers there.
    """
    found = find_network(address)
    name = name or default_name(found.humans, getpass.getuser())
    check_name(name)
    client = Client(
        WebSocketTransport(found.url),
        name,
        "human",
        token=token or found.tokens.get(name),
        schemas=False,
    )
    try:
        return asyncio.run(_chat(client, found, opening))
    except KeyboardInterrupt:
        return 130


async def _chat(client: Client, place: Address, opening: str | None) -> int:
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(client)
        except OperationError as exc:
            raise UserError(exc.message) from exc
        except ConnectionLost as exc:
            raise unreachable(place, exc) from exc
        return await run_chat(client, _console(), opening=opening)


def _console() -> Console:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return PipeConsole(sys.stdin.fileno(), sys.stdout)
    from hubbub.cli.chat.terminal import TerminalConsole

    return TerminalConsole()
