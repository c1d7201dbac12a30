"""`log`: the messages of the network, the last ones and those to come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.joining import AddressOption, Target, TokenOption, joined, run_async
from hubbub.cli.messages import message_line
from hubbub.cli.output import JsonFlag, console, emit_json
from hubbub.errors import UserError
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Cursor, Event
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import ThreadPage

if TYPE_CHECKING:
    from hubbub.client import Client

__all__ = ["register"]

Show = Callable[[Message], None]


def register(app: typer.Typer) -> None:
    app.command()(log)


def log(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Stay and show what comes, until Ctrl-C.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="How many messages of the past.")
    ] = 20,
    thread: Annotated[
        str | None,
        typer.Option("--thread", "-t", help="Only this thread, for example channel_desk."),
    ] = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the messages of the network."""
    target = Target(address, token)
    try:
        run_async(_log(target, limit, follow, thread, as_json))
    except KeyboardInterrupt:
        if not follow:
            raise


async def _log(target: Target, limit: int, follow: bool, thread: str | None, as_json: bool) -> None:
    only = _canonical(thread) if thread is not None else None
    screen = console()

    def show(message: Message) -> None:
        if as_json:
            emit_json(message)
        else:
            screen.print(message_line(message))

    async with joined(target, observe=True) as client:
        head, epoch = client.ready.head, client.hello.epoch
        if only is not None:
            for message in await _page(client, only, limit):
                show(message)
            if follow:
                await _follow(client, only, show)
            return
    start = Cursor(epoch=epoch, seq=max(0, head - limit))
    async with joined(target, observe=True, cursor=start) as client:
        await _follow(client, None, show, upto=None if follow else head)


async def _page(client: Client, thread: str, limit: int) -> tuple[Message, ...]:
    if not limit:
        return ()
    value = await client.call("read_thread", thread=thread, limit=min(limit, 100))
    return ThreadPage.model_validate(value).messages


async def _follow(client: Client, only: str | None, show: Show, upto: int | None = None) -> None:
    """Show what comes; until the log's position `upto`, if given."""
    if upto is not None and client.ready.cursor >= upto:
        return
    async for item in client.events():
        if not isinstance(item, Event):
            continue
        if only is None or item.message.thread_id == only:
            show(item.message)
        await client.ack(item.seq)
        if upto is not None and item.seq >= upto:
            return


def _canonical(thread: str) -> str:
    found = thread_ids.canonical(thread, "operator")
    if found is None or thread.startswith("direct_"):
        raise UserError(
            f"'{thread}' names no thread: write channel_<name>, broadcast or dm.<name>.<name>"
        )
    return found
