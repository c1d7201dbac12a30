"""The mod `transcript`: what was said, as a file, and back.

mods:
  - transcript
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.host import Host
from hubbub.mods.operation import Calling, operation
from hubbub.mods.refusals import bad_request, forbidden
from hubbub.mods.transcript.formats import (
    VERSION,
    Html,
    Markdown,
    TranscriptFormat,
    line_of,
    read_header,
)
from hubbub.mods.transcript.importer import Importer
from hubbub.mods.transcript.schemas import ExportTranscript, Imported, ImportTranscript, Piece
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import InteractionPage, ThreadPage

__all__ = ["TranscriptMod"]

AT_ONCE = 50
"""Messages that are read at once."""


class TranscriptPart(NamedTuple):
    """Some messages, oldest first, each with its position among what is exported."""

    messages: Sequence[tuple[int, Message]]
    upto: int
    """All up to this position are among them."""
    last: int
    """Where the transcript ends: what is said meanwhile does not come into it."""


def subject_of(args: ExportTranscript) -> str:
    """What it is a transcript of. Raises `OperationError` unless that is one thing."""
    given = [args.thread, args.interaction, "All that was said" if args.everything else None]
    found = [each for each in given if each is not None]
    if len(found) != 1:
        raise bad_request("name one of these: thread, interaction, everything")
    return found[0]


async def part_of(
    host: Host, call: Calling, args: ExportTranscript, after: int, last: int | None
) -> TranscriptPart:
    """The next part after a position. Raises `OperationError` for what the caller may not read."""
    if args.thread is not None:
        return await _of_thread(host, call, args.thread, after, last)
    if args.interaction is not None:
        return await _of_interaction(host, call, args.interaction, after, last or host.head)
    if not call.owner:
        text = "everything: only an owner of the network may export it all"
        raise forbidden(text)
    last = host.head if last is None else last
    messages, upto = await host.readable(call, after, AT_ONCE)
    return _cut([(message.seq, message) for message in messages], upto, last)


async def _of_thread(
    host: Host, call: Calling, thread: str, after: int, last: int | None
) -> TranscriptPart:
    if last is None:
        newest = await _page(host, call, thread, None, 1)
        last = newest[-1].tseq if newest else 0
    wanted = min(AT_ONCE, last - after)
    messages: Sequence[Message] = ()
    while wanted > 0:
        messages = await _page(host, call, thread, after + wanted + 1, wanted)
        if not messages or messages[0].tseq == after + 1:
            break
        wanted = messages[0].tseq - after - 1  # long messages: a page has the last ones of them
    upto = messages[-1].tseq if messages else last
    return _cut([(message.tseq, message) for message in messages], upto, last)


async def _page(
    host: Host, call: Calling, thread: str, before: int | None, limit: int
) -> Sequence[Message]:
    args = {"before": before} if before is not None else {}
    page = await host.ask(call, "read_thread", thread=thread, limit=limit, **args)
    assert isinstance(page, ThreadPage), "the hub's own operation"
    return page.messages


async def _of_interaction(
    host: Host, call: Calling, interaction: str, after: int, last: int
) -> TranscriptPart:
    args = {"after": after} if after else {}
    page = await host.ask(call, "read_interaction", id=interaction, **args)
    assert isinstance(page, InteractionPage), "the hub's own operation"
    upto = page.upto if page.more else last
    return _cut([(message.seq, message) for message in page.messages], upto, last)


def _cut(messages: Sequence[tuple[int, Message]], upto: int, last: int) -> TranscriptPart:
    return TranscriptPart([each for each in messages if each[0] <= last], min(upto, last), last)


MOST = 200_000
"""Characters after which a piece ends; it has one message at least."""


class TranscriptMod(Mod):
    """Threads, interactions and whole networks as Markdown, JSON lines or a page of HTML; and JSON
    lines as the history of a new network."""

    name = "transcript"
    migrations = "tables"

    def __init__(self, config: ModConfig):
        super().__init__(config)
        self._importer: Importer

    async def start(self) -> None:
        self._importer = Importer(self.host)

    @operation()
    async def export_transcript(self, call: Calling, args: ExportTranscript) -> Piece:
        """Export a thread, an interaction, or (owners) all that you may read, as a text in pieces:
        go on with `cursor` until there is none."""
        subject = subject_of(args)
        after, last = (None, None) if args.cursor is None else map(int, args.cursor.split("-"))
        part = await part_of(self.host, call, args, after or 0, last)
        look = _LOOKS.get(args.format) or _Lines(self.host.network, self.host.epoch)
        texts = [look.head(f"{subject} ({self.host.network})")] if after is None else []
        size, upto, shown = 0, part.upto, list[Message]()
        for position, message in part.messages:
            text = look.message(message)
            if shown and size + len(text) > MOST:
                break
            size += len(text)
            shown.append(message)
            texts.append(text)
            upto = position
        else:
            upto = part.upto
        more = upto < part.last
        if not more:
            texts.append(look.foot())
        return Piece(
            text="".join(texts),
            messages=len(shown),
            outside=any(message.outside for message in shown),
            cursor=f"{upto}-{part.last}" if more else None,
        )

    @operation(permission="admin", tool=False, idempotent=True)
    async def import_transcript(self, call: Calling, args: ImportTranscript) -> Imported:
        """Import lines of a transcript (jsonl) of another network into threads in which nothing was
        said yet. Nobody is woken, and each line is imported once."""
        if self.host.kind_of(call.participant) == "agent":
            raise forbidden("only people import transcripts")
        return await self._importer.run(call, read_header(args.header), args.lines, args.first)


class _Lines:
    """JSON lines."""

    def __init__(self, network: str, epoch: str):
        self._header = {"transcript": VERSION, "network": network, "epoch": epoch}

    def head(self, title: str) -> str:
        return json.dumps(self._header, separators=(",", ":")) + "\n"

    def message(self, message: Message) -> str:
        return line_of(message) + "\n"

    def foot(self) -> str:
        return ""


_LOOKS: dict[str, TranscriptFormat] = {"markdown": Markdown(), "html": Html()}
