"""`transcript export | import`: what was said as a file, and back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import BaseModel, JsonValue

from hubbub.cli.joining import (
    AddressOption,
    AsOption,
    Target,
    TokenOption,
    default_person,
    joined,
    run_async,
)
from hubbub.cli.output import counted, help_if_alone
from hubbub.errors import UserError

if TYPE_CHECKING:
    from hubbub.client import Client

__all__ = ["register"]

MOST_LINES, MOST_BYTES = 100, 180_000
"""Of one call that imports: a hub takes frames of 256 KiB."""
_FORMATS = {".md": "markdown", ".jsonl": "jsonl", ".html": "html", ".htm": "html"}

Format = Literal["md", "jsonl", "html"]

group = typer.Typer(
    help="Write what was said to a file, and back (mod transcript).",
    invoke_without_command=True,
    callback=help_if_alone,
)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="transcript")


class _Piece(BaseModel):
    """Of an answer: what is written."""

    text: str
    messages: int
    cursor: str | None = None


class _Imported(BaseModel):
    imported: int
    before: int
    skipped: int


# export -----------------------------------------------------------------------------------------


@group.command("export")
def export(
    thread: Annotated[str | None, typer.Option("--thread", help="A thread, or a person.")] = None,
    interaction: Annotated[
        str | None, typer.Option("--interaction", help="What one message set in motion: i42.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole network.")] = False,
    format: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Left out: as the file is called, else md."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; left out: the screen.")
    ] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Write a thread, an interaction or everything as Markdown, JSON lines or HTML."""
    target = Target(address, token)
    person = default_person(target, as_) if as_ is not None or not everything else None
    kind = {"md": "markdown"}.get(format or "", format) or _format_of(output)
    asked: dict[str, JsonValue] = {"format": kind}
    if everything:
        asked["everything"] = True
    for name, value in (("thread", thread), ("interaction", interaction)):
        if value is not None:
            asked[name] = value
    count = run_async(_export(target, person, asked, output))
    if output is not None:
        typer.echo(f"{counted(count, 'message', 'messages')} in {output}")


def _format_of(output: Path | None) -> str:
    return "markdown" if output is None else _FORMATS.get(output.suffix.lower(), "markdown")


async def _export(
    target: Target, person: str | None, asked: dict[str, JsonValue], output: Path | None
) -> int:
    async with joined(target, person) as client, aclosing(_pieces(client, asked)) as pieces:
        if output is not None:
            return await _write_whole(output, pieces)
        count = 0
        async for piece in pieces:
            sys.stdout.write(piece.text)
            count += piece.messages
        return count


async def _pieces(client: Client, asked: dict[str, JsonValue]) -> AsyncGenerator[_Piece, None]:
    more: dict[str, JsonValue] = {}
    while True:
        answer = await client.call("export_transcript", cid=None, **asked, **more)
        piece = _Piece.model_validate(answer)
        yield piece
        if piece.cursor is None:
            return
        more = {"cursor": piece.cursor}


async def _write_whole(output: Path, pieces: AsyncIterator[_Piece]) -> int:
    """The file has all of it, or is as it was before. Raises `UserError`."""
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
        raise UserError(f"{output} cannot be written: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)
    return count


# import -----------------------------------------------------------------------------------------


@group.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A transcript as JSON lines.")],
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Import a transcript of another network into threads in which nothing was said yet. What was
    imported before is not imported again: run it again if it was cut off."""
    target = Target(address, token)
    person = None if as_ is None else default_person(target, as_)
    sums = run_async(_import(target, person, file))
    text = f"{counted(sums.imported, 'message', 'messages')} imported"
    if sums.before:
        text += f", {sums.before} were there before"
    if sums.skipped:
        text += f", {sums.skipped} not taken over"
    typer.echo(text)


async def _import(target: Target, person: str | None, file: Path) -> _Imported:
    imported = before = skipped = 0
    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            header = lines.readline().rstrip("\n")
            async with joined(target, person) as client:
                for first, piece in _parts(lines):
                    answer = await client.call(
                        "import_transcript", cid=None, header=header, lines=piece, first=first
                    )
                    told = _Imported.model_validate(answer)
                    imported += told.imported
                    before += told.before
                    skipped += told.skipped
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is no text in UTF-8") from error
    return _Imported(imported=imported, before=before, skipped=skipped)


def _parts(lines: Iterator[str]) -> Iterator[tuple[int, list[JsonValue]]]:
    """The lines after the first, as many at a time as one call takes, with the number of the first
    of them; at least one part, which may be empty."""
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
