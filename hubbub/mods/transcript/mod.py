"""The mod `transcript`: what was said, as a file, and back.

mods:
  - transcript
"""

from __future__ import annotations

import json

from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.operation import Calling, operation
from hubbub.mods.transcript.exporting import part_of, subject_of
from hubbub.mods.transcript.importing import Importer
from hubbub.mods.transcript.lines import VERSION, line_of, read_header
from hubbub.mods.transcript.pages import Html, Look, Markdown
from hubbub.mods.transcript.words import (
    ExportTranscript,
    Imported,
    ImportTranscript,
    Piece,
)
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message

__all__ = ["TranscriptMod"]

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
            raise OperationError(ErrorCode.FORBIDDEN, "only people import transcripts")
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


_LOOKS: dict[str, Look] = {"markdown": Markdown(), "html": Html()}
