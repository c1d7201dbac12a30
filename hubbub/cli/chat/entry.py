"""`hubbub chat`: find the network, join as a person, chat."""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

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
    *,
    full: bool = False,
) -> int:
    """Chat in the network at `address` (host:port, URL or name; None: the one that runs here).

    `name` defaults to a person of the network, else to this user; `token` to the one in the run
    file; `opening` is the thread to begin in; `full` fills the screen. Returns an exit code. Raises
    `UserError` when the input is wrong: no such network, not a name, a token that does not prove
    it, no terminal or no textual for a full screen; and `Unreachable` when nobody answers there.
    """
    if full:
        _check_full()
    found = find_network(address)
    name = name or default_name(found.humans, getpass.getuser())
    check_name(name)
    client = Client(
        WebSocketTransport(found.url),
        name,
        "human",
        token=token or found.tokens.get(name),
        latest=full,
        schemas=False,
    )
    begin = _fill_screen if full else _line_by_line
    try:
        return asyncio.run(_chat(client, found, partial(begin, opening=opening)))
    except KeyboardInterrupt:
        return 130


def _check_full() -> None:
    try:
        import textual  # noqa: F401  whether it is there at all
    except ImportError as exc:
        text = "the full screen needs an extra: pip install 'hubbub[full]'"
        raise UserError(text) from exc
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("the full screen needs a terminal; without --full, pipes will do")


async def _chat(client: Client, place: Address, begin: Callable[[Client], Awaitable[int]]) -> int:
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(client)
        except OperationError as exc:
            raise UserError(exc.message) from exc
        except ConnectionLost as exc:
            raise unreachable(place, exc) from exc
        return await begin(client)


async def _line_by_line(client: Client, opening: str | None) -> int:
    return await run_chat(client, _console(), opening=opening)


async def _fill_screen(client: Client, opening: str | None) -> int:
    from hubbub.cli.full.app import FullScreenChat  # an extra

    return await FullScreenChat(client, opening=opening).run_async() or 0


def _console() -> Console:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return PipeConsole(sys.stdin.fileno(), sys.stdout)
    from hubbub.cli.chat.terminal import TerminalConsole

    return TerminalConsole()
