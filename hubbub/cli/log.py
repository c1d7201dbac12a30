"""`log`: the messages of the network, the last ones and those to come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.joining import (
    OPERATOR,
    AddressOption,
    AsOption,
    Target,
    TokenOption,
    default_person,
    joined,
    run_async,
)
from hubbub.cli.messages import message_line
from hubbub.cli.naming import find_thread
from hubbub.cli.output import JsonFlag, console, emit_json
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
        typer.Option("--thread", "-t", help="Only this thread: #desk, bob, a,b or #desk.t42."),
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the messages of the network."""
    target = Target(address, token)
    reader = default_person(target, as_) if thread is not None else OPERATOR
    try:
        run_async(_log(target, limit, follow, (thread, reader), as_json))
    except KeyboardInterrupt:
        if not follow:
            raise


async def _log(
    target: Target, limit: int, follow: bool, chosen: tuple[str | None, str], as_json: bool
) -> None:
    """`chosen`: the only thread to show, if any, as it is named from whose point of view."""
    screen = console()

    def show(message: Message) -> None:
        if as_json:
            emit_json(message)
        else:
            screen.print(message_line(message))

    async with joined(target, observe=True) as client:
        head, epoch = client.ready.head, client.hello.epoch
        thread, reader = chosen
        if thread is not None:
            only = _canonical(client, thread, reader)
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


def _canonical(client: Client, thread: str, reader: str) -> str:
    """The thread that `reader` means; `dm.a.b` is one of others. Raises `UserError`."""
    people = {person.id for person in client.ready.participants}
    channels = {channel.name for channel in client.ready.channels}
    return find_thread(thread, reader, people, channels)
