"""The mod `transcript`: exports messages to files, and imports them.

mods:
  - transcript
"""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.ids import interaction_id, message_id, parse_interaction_id, parse_message_id
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.host import Host, ImportedMessage
from hubbub.mods.operation import Calling, Statement, bad_request, conflict, forbidden, operation
from hubbub.mods.transcript.formats import (
    VERSION,
    Header,
    Html,
    Markdown,
    TranscriptFormat,
    line_of,
    read_header,
    read_line,
)
from hubbub.mods.transcript.schemas import ExportTranscript, Imported, ImportTranscript, Piece
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Amendment, Draft, Message, Quote, TranscriptMark
from hubbub.protocol.operations import InteractionPage, ThreadPage

__all__ = ["TranscriptMod"]


_REPLIES = re.compile(r"\.t([1-9][0-9]{0,17})")


class _Line(NamedTuple):
    number: int
    text: str
    message: Message


class Importer:
    """Imports for a network, one batch at a time."""

    def __init__(self, host: Host):
        self._host = host
        self._turn = asyncio.Lock()

    async def run(
        self, call: Calling, header: Header, texts: Sequence[str], first: int
    ) -> Imported:
        """Import lines, numbered from `first`. Raises `OperationError`. If a line is not valid by
        itself, none is imported."""
        lines = [_read(text, first + n) for n, text in enumerate(texts)]
        if header.epoch == self._host.epoch:
            raise conflict("line 1: this is a transcript of this network itself")
        async with self._turn:
            return await _TranscriptImport(self._host, call, header.epoch).run(lines)


def _read(text: str, number: int) -> _Line:
    try:
        return _Line(number, text, read_line(text))
    except ValueError as error:
        raise _line_error(number, ErrorCode.BAD_REQUEST, str(error)) from None


def _line_error(number: int, code: str, problem: str) -> OperationError:
    return OperationError(code, f"line {number}: {problem}", details={"line": number})


class _TranscriptImport:
    """The import of a batch of lines."""

    def __init__(self, host: Host, call: Calling, epoch: str):
        self._host, self._call, self._epoch = host, call, epoch
        self._imported: dict[int, int] = {}
        """Log positions in this network, by those in the source."""
        self._pending: dict[int, _Line] = {}
        self._claimed: set[str] = set()
        """Threads that are known to belong to this import."""

    async def run(self, lines: Sequence[_Line]) -> Imported:
        await self._load_imported(lines)
        before = skipped = imported = 0
        for line in lines:
            message = line.message
            if message.seq in self._imported or message.seq in self._pending:
                before += 1
            elif message.type == "mod" or not self._has_original(message):
                skipped += 1
            else:
                if not self._pending.keys().isdisjoint(_references(message)):
                    await self._flush()
                await self._claim_thread(line)
                self._pending[message.seq] = line
                imported += 1
        await self._flush()
        return Imported(imported=imported, before=before, skipped=skipped)

    def _has_original(self, message: Message) -> bool:
        """Whether the message that this one amends was imported. True if it amends none."""
        if message.amends is None:
            return True
        seq = parse_message_id(message.amends.message_id) or 0
        return seq in self._imported or seq in self._pending

    async def _load_imported(self, lines: Iterable[_Line]) -> None:
        """Load the positions of earlier imports of these lines and the messages they refer to."""
        seqs = {seq for line in lines for seq in (line.message.seq, *_references(line.message))}
        rows = await self._host.rows(
            "SELECT seq, became FROM transcript_line WHERE epoch = ? "
            "AND seq IN (SELECT value FROM json_each(?))",
            self._epoch,
            f"[{','.join(map(str, seqs))}]",
        )
        self._imported.update(dict(rows))

    async def _claim_thread(self, line: _Line) -> None:
        """Raises `OperationError` if the line's thread has messages that were not imported."""
        root = thread_ids.root(line.message.thread_id)
        if root in self._claimed:
            return
        sql = "SELECT epoch FROM transcript_thread WHERE thread = ?"
        rows = await self._host.rows(sql, root)
        if (self._host.latest(root).tseq and not rows) or (rows and rows[0][0] != self._epoch):
            raise _line_error(
                line.number,
                ErrorCode.CONFLICT,
                f"{root} already has messages in this network; import into a new network",
            )
        if not rows:
            sql = "INSERT INTO transcript_thread VALUES (?, ?)"
            await self._host.write([Statement(sql, (root, self._epoch))])
        self._claimed.add(root)

    async def _flush(self) -> None:
        """Write the pending messages into the log, and store their positions."""
        lines = list(self._pending.values())
        self._pending.clear()
        if not lines:
            return
        try:
            messages = [self._converted(line) for line in lines]
            positions = await self._host.restore(self._call, messages)
        except OperationError as error:
            index = error.details.get("index")
            number = lines[index if isinstance(index, int) else 0].number
            raise _line_error(number, error.code, error.message) from error
        pairs = [(line.message.seq, at) for line, at in zip(lines, positions, strict=True)]
        sql = "INSERT OR REPLACE INTO transcript_line VALUES (?, ?, ?)"
        await self._host.write([Statement(sql, (self._epoch, seq, at)) for seq, at in pairs])
        self._imported.update(pairs)

    # One line -----------------------------------------------------------------------------

    def _converted(self, line: _Line) -> ImportedMessage:
        message = line.message
        opened = self._imported.get(parse_interaction_id(message.interaction_id) or 0)
        return ImportedMessage(
            self._draft(message),
            None if opened is None else interaction_id(opened),
            0 if opened is None else message.hop,
            f"import:{self._epoch}:{message.seq}",
            zlib.crc32(line.text.encode()),
        )

    def _draft(self, message: Message) -> Draft:
        thread = _thread(message.thread_id, self._imported)
        members = thread_ids.members_of(thread)
        return Draft(
            sender_id=message.sender_id,
            sender_kind=message.sender_kind,
            thread_id=thread,
            type=message.type,
            content=message.content,
            recipients=tuple(who for who in members if who != message.sender_id),
            text_representation=message.text_representation,
            reply_to=self._message(message.reply_to),
            quote=self._quote(message.quote),
            mentions=message.mentions,
            attachments=tuple(
                each.model_copy(update={"uri": _without_file_scheme(each.uri)})
                for each in message.attachments
            ),
            cause_id=self._cause(message.cause_id),
            sent_by=message.sent_by,
            untrusted=True,
            purpose=TranscriptMark(
                _log_time(message.sent_at), self._amends(message.amends), message.timer_of
            ),
        )

    def _message(self, id: str | None) -> str | None:
        position = self._imported.get(parse_message_id(id or "") or 0)
        return None if position is None else message_id(position)

    def _quote(self, quote: Quote | None) -> Quote | None:
        if quote is None:
            return None
        return Quote(message_id=self._message(quote.message_id) or "", text=quote.text)

    def _cause(self, cause: str | None) -> str | None:
        agent, dash, id = (cause or "").rpartition("-")
        message = self._message(id)
        return None if message is None else f"{agent}{dash}{message}"

    def _amends(self, amends: Amendment | None) -> Amendment | None:
        if amends is None:
            return None
        message = self._message(amends.message_id)
        assert message is not None, "`run` skips the others"
        return Amendment(message_id=message, kind=amends.kind)


def _references(message: Message) -> Iterator[int]:
    """The positions of the messages that this one refers to."""
    names = (message.reply_to, (message.cause_id or "").rpartition("-")[2])
    yield from (seq for name in names if (seq := parse_message_id(name or "")))
    for part in (message.quote, message.amends):
        seq = parse_message_id(part.message_id) if part is not None else None
        if seq is not None:
            yield seq
    opened = parse_interaction_id(message.interaction_id)
    if opened is not None and opened != message.seq:
        yield opened
    yield from (int(seq) for seq in _replies(message.thread_id))


def _replies(thread: str) -> Sequence[str]:
    return _REPLIES.findall(thread[len(thread_ids.root(thread)) :])


def _thread(thread: str, positions: Mapping[int, int]) -> str:
    """The corresponding thread of this network, or its nearest ancestor that exists."""
    target = thread_ids.root(thread)
    for seq in map(int, _replies(thread)):
        if seq not in positions:
            break
        target = thread_ids.reply_thread(target, positions[seq])
    return target


def _without_file_scheme(uri: str) -> str:
    """A reference to a file of the source network must not refer to one of this network."""
    return f"imported:{uri.partition(':')[2]}" if uri.lower().startswith("file:") else uri


def _log_time(moment: datetime) -> str:
    """A time in the format of the log."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


BATCH = 50
"""Messages read at once."""


class TranscriptPart(NamedTuple):
    """Messages, oldest first, each with its position in the export."""

    messages: Sequence[tuple[int, Message]]
    upto: int
    """The position up to which the part is complete."""
    last: int
    """The position at which the transcript ends. Later messages are not included."""


def subject_of(args: ExportTranscript) -> str:
    """The title of the transcript. Raises `OperationError` unless exactly one source is given."""
    sources = [args.thread, args.interaction, "All messages" if args.everything else None]
    given = [each for each in sources if each is not None]
    if len(given) != 1:
        raise bad_request("give exactly one of thread, interaction and everything")
    return given[0]


async def part_of(
    host: Host, call: Calling, args: ExportTranscript, after: int, last: int | None
) -> TranscriptPart:
    """The next part after a position. Raises `OperationError` if the caller cannot read it."""
    if args.thread is not None:
        return await _of_thread(host, call, args.thread, after, last)
    if args.interaction is not None:
        return await _of_interaction(host, call, args.interaction, after, last or host.head)
    if not call.owner:
        text = "everything: only owners of the network can export everything"
        raise forbidden(text)
    last = host.head if last is None else last
    messages, upto = await host.readable(call, after, BATCH)
    return _cut([(message.seq, message) for message in messages], upto, last)


async def _of_thread(
    host: Host, call: Calling, thread: str, after: int, last: int | None
) -> TranscriptPart:
    if last is None:
        newest = await _page(host, call, thread, None, 1)
        last = newest[-1].tseq if newest else 0
    wanted = min(BATCH, last - after)
    messages: Sequence[Message] = ()
    while wanted > 0:
        messages = await _page(host, call, thread, after + wanted + 1, wanted)
        if not messages or messages[0].tseq == after + 1:
            break
        wanted = messages[0].tseq - after - 1  # the page has only the last ones
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


MAX_CHARACTERS = 200_000
"""Maximum length of a piece, which has at least one message."""


class TranscriptMod(Mod):
    """Export of threads, interactions and whole networks as Markdown, JSON lines or HTML, and
    import of JSON lines into a new network."""

    name = "transcript"
    migrations = "tables"

    def __init__(self, config: ModConfig):
        super().__init__(config)
        self._importer: Importer

    async def start(self) -> None:
        self._importer = Importer(self.host)

    @operation()
    async def export_transcript(self, call: Calling, args: ExportTranscript) -> Piece:
        """Export a thread, an interaction or (owners only) everything you can read, as text in
        pieces. Continue with `cursor` until there is none."""
        subject = subject_of(args)
        after, last = (None, None) if args.cursor is None else map(int, args.cursor.split("-"))
        part = await part_of(self.host, call, args, after or 0, last)
        writer = _FORMATS.get(args.format) or _Lines(self.host.network, self.host.epoch)
        texts = [writer.head(f"{subject} ({self.host.network})")] if after is None else []
        size, upto, included = 0, part.upto, list[Message]()
        for position, message in part.messages:
            text = writer.message(message)
            if included and size + len(text) > MAX_CHARACTERS:
                break
            size += len(text)
            included.append(message)
            texts.append(text)
            upto = position
        else:
            upto = part.upto
        more = upto < part.last
        if not more:
            texts.append(writer.foot())
        return Piece(
            text="".join(texts),
            messages=len(included),
            untrusted=any(message.untrusted for message in included),
            cursor=f"{upto}-{part.last}" if more else None,
        )

    @operation(permission="admin", tool=False, idempotent=True)
    async def import_transcript(self, call: Calling, args: ImportTranscript) -> Imported:
        """Import lines of a transcript (jsonl) of another network into empty threads. This wakes no
        agent, and each line is imported only once."""
        if self.host.kind_of(call.participant) == "agent":
            raise forbidden("only people can import transcripts")
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


_FORMATS: dict[str, TranscriptFormat] = {"markdown": Markdown(), "html": Html()}
