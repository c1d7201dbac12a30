"""`messages list | export | import`: messages on the screen, to a file, and from a file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import JsonValue

from hubbub.cli.connection import (
    OPERATOR,
    AddressOption,
    AsOption,
    NetworkTarget,
    TokenOption,
    default_person,
    joined,
    run_async,
)
from hubbub.cli.operations import complete_thread
from hubbub.cli.output import JsonFlag, console, counted, emit_json
from hubbub.errors import OperationError, UserError
from hubbub.mods.transcript.schemas import Imported, Piece
from hubbub.people.messages import message_line
from hubbub.people.names import find_thread, members
from hubbub.people.text import visible
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Cursor, Event
from hubbub.protocol.messages import Message, amended
from hubbub.protocol.operations import ThreadPage

if TYPE_CHECKING:
    from hubbub.client import Client

__all__ = ["register"]

MOST_LINES, MOST_BYTES = 100, 180_000
"""Limits of one import call: a hub accepts frames of up to 256 KiB."""
MAX_PAGE = 100
"""Messages of one page of a thread."""
_FORMATS = {".md": "markdown", ".jsonl": "jsonl", ".html": "html", ".htm": "html"}

Format = Literal["md", "jsonl", "html"]
Show = Callable[[Message], None]


def register(group: typer.Typer, word: str) -> None:
    for name, command in (("list", list_), ("export", export), ("import", import_)):
        group.command(name)(command)


def list_(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new messages, until Ctrl-C.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="How many past messages to print.")
    ] = 20,
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            "-t",
            help="Only this thread: #desk, bob, a,b or #desk.t42.",
            autocompletion=complete_thread,
        ),
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the latest messages. With --follow, keep printing new ones as they arrive.

    With a token you read as its person; then only owners can leave out --thread.
    """
    target = NetworkTarget(address, token)
    reader = default_person(target, as_) if token or thread is not None else OPERATOR
    try:
        run_async(_list(target, limit, follow, (thread, reader), as_json))
    except OperationError as error:
        if thread is not None or error.code != ErrorCode.FORBIDDEN:
            raise
        raise UserError("only owners can list everything; name a thread with --thread") from None
    except KeyboardInterrupt:
        if not follow:
            raise


async def _list(
    target: NetworkTarget, limit: int, follow: bool, chosen: tuple[str | None, str], as_json: bool
) -> None:
    """List messages; `chosen` is the only thread to show, if any, and the reader that names it."""
    screen = console()

    def show(message: Message) -> None:
        if as_json:
            emit_json(message)
        else:
            screen.print(message_line(message))

    thread, reader = chosen
    # A person's token does not prove the operator, who reads everything.
    person = reader if target.token else None
    watches = person is None or thread is None
    async with joined(target, person, observe=watches, cursor="latest") as client:
        head, epoch = client.ready.head, client.hello.epoch
        if thread is not None:
            only = _canonical(client, thread, reader)
            for message in await _latest(client, only, limit):
                show(message)
            if follow:
                await _follow(client, only, show)
            return
    start = Cursor(epoch=epoch, seq=max(0, head - limit))
    async with joined(target, person, observe=True, cursor=start) as client:
        past = list[Message]()
        await _follow(client, None, past.append, upto=head)
        for message in _as_amended(past):
            show(message)
        if follow:
            await _follow(client, None, show)


async def _latest(client: Client, thread: str, limit: int) -> Sequence[Message]:
    """The last `limit` messages of the thread, oldest first."""
    messages: tuple[Message, ...] = ()
    before: int | None = None
    while len(messages) < limit:
        most = min(limit - len(messages), MAX_PAGE)
        value = await client.call("read_thread", thread=thread, limit=most, before=before)
        page = ThreadPage.model_validate(value)
        messages = page.messages + messages
        if not page.more:
            break
        before = page.messages[0].tseq
    return messages


async def _follow(client: Client, only: str | None, show: Show, upto: int | None = None) -> None:
    """Show messages as they arrive, until the log's position `upto` if given."""
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


def _as_amended(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages as amended by later ones. An edit shows its own text unless that was deleted."""
    changes: dict[str, list[Message]] = {}
    for message in messages:
        if message.amends is not None:
            changes.setdefault(message.amends.message_id, []).append(message)
    for message in messages:
        of = message.id if message.amends is None else message.amends.message_id
        later = [each for each in changes.get(of, ()) if each.seq > message.seq]
        edit = message.amends is not None
        yield amended(message, (each for each in later if not edit or _deletes(each)))


def _deletes(message: Message) -> bool:
    return message.amends is not None and message.amends.kind == "deleted"


def _canonical(client: Client, thread: str, reader: str) -> str:
    """The id of the thread that `reader` names; `dm.a.b` is one of others. Raises `UserError`."""
    ready = client.ready
    people = {"hub", *(person.id for person in ready.participants)}
    people |= members(thread.id for thread in ready.threads)
    channels = {channel.name for channel in ready.channels}
    return find_thread(thread, reader, people, channels)


# Files --------------------------------------------------------------------------------------------


def export(
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            "-t",
            help="A thread or a person: #desk, bob, a,b or #desk.t42.",
            autocompletion=complete_thread,
        ),
    ] = None,
    interaction: Annotated[
        str | None, typer.Option("--interaction", help="All messages of an interaction: i42.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole network.")] = False,
    format: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Default: from the file's suffix, else md."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file. Default: standard output.")
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Export messages as Markdown, JSON lines or HTML."""
    if (thread, interaction, everything or None).count(None) != 2:
        raise UserError("give one of --thread, --interaction and --all")
    if output is not None and output.is_dir():
        raise UserError(f"cannot write {output}: it is a folder")
    target = NetworkTarget(address, token)
    person = default_person(target, as_) if as_ is not None or not everything else None
    kind = {"md": "markdown"}.get(format or "", format) or _format_of(output)
    args: dict[str, JsonValue] = {"format": kind}
    if everything:
        args["everything"] = True
    for name, value in (("thread", thread), ("interaction", interaction)):
        if value is not None:
            args[name] = value
    count = run_async(_export(target, person, args, output))
    if output is not None:
        typer.echo(f"{counted(count, 'message', 'messages')} in {output}")


def _format_of(output: Path | None) -> str:
    return "markdown" if output is None else _FORMATS.get(output.suffix.lower(), "markdown")


async def _export(
    target: NetworkTarget, person: str | None, args: dict[str, JsonValue], output: Path | None
) -> int:
    async with joined(target, person) as client:
        if isinstance(thread := args.get("thread"), str):
            args = {**args, "thread": _canonical(client, thread, client.participant)}
        async with aclosing(_pieces(client, args)) as pieces:
            if output is not None:
                return await _write_whole(output, pieces)
            count = 0
            async for piece in pieces:
                sys.stdout.write(visible(piece.text) if sys.stdout.isatty() else piece.text)
                count += piece.messages
            return count


async def _pieces(client: Client, args: dict[str, JsonValue]) -> AsyncGenerator[Piece, None]:
    more: dict[str, JsonValue] = {}
    while True:
        answer = await client.call("export_transcript", cid=None, **args, **more)
        piece = Piece.model_validate(answer)
        yield piece
        if piece.cursor is None:
            return
        more = {"cursor": piece.cursor}


async def _write_whole(output: Path, pieces: AsyncIterator[Piece]) -> int:
    """Write the file atomically: completely, or not at all. Raises `UserError`."""
    beside, count = output.with_name(f".{output.name}.{os.getpid()}.part"), 0
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            async for piece in pieces:
                file.write(piece.text)
                count += piece.messages
            file.flush()
            os.fsync(file.fileno())
        beside.replace(output)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)
    return count


def import_(
    file: Annotated[Path, typer.Argument(help="A transcript as JSON lines.")],
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Import a transcript of another network into empty threads. Messages that were imported
    before are skipped: if an import was interrupted, run it again."""
    target = NetworkTarget(address, token)
    person = None if as_ is None else default_person(target, as_)
    imported, before, skipped = run_async(_import(target, person, file))
    text = f"{counted(imported, 'message', 'messages')} imported"
    text += f", {before} already there" if before else ""
    text += f", {skipped} skipped" if skipped else ""
    typer.echo(text)


async def _import(target: NetworkTarget, person: str | None, file: Path) -> tuple[int, int, int]:
    """Returns the numbers of messages imported, already there, and skipped."""
    imported = before = skipped = 0
    try:
        with file.open(encoding="utf-8-sig", newline="\n") as lines:  # editors add a BOM
            header = lines.readline().rstrip("\n")
            async with joined(target, person) as client:
                for first, piece in _parts(lines):
                    with _too_long(first):
                        answer = await client.call(
                            "import_transcript", cid=None, header=header, lines=piece, first=first
                        )
                    result = Imported.model_validate(answer)
                    imported += result.imported
                    before += result.before
                    skipped += result.skipped
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 text") from error
    return imported, before, skipped


@contextmanager
def _too_long(line: int) -> Iterator[None]:
    """Name the line that does not fit into a call. It is alone in its part."""
    try:
        yield
    except OperationError as error:
        if error.code != ErrorCode.TOO_LARGE:
            raise
        named = "line" in error.details
        text = error.message if named else f"line {line} is too long to import: {error.message}"
        raise UserError(text) from error


def _parts(lines: Iterator[str]) -> Iterator[tuple[int, list[JsonValue]]]:
    """The lines after the header in parts that fit one call, each with the number of its first
    line. Yields at least one part, which can be empty."""
    part, size, first = list[JsonValue](), 0, 2
    for number, line in enumerate(lines, 2):
        text = line.rstrip("\r\n")
        more = len(json.dumps(text))
        if part and (len(part) >= MOST_LINES or size + more > MOST_BYTES):
            yield first, part
            part, size, first = [], 0, number
        part.append(text)
        size += more
    yield first, part
