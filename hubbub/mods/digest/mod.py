"""The mod `digest`: a summary of new activity since the last visit, by thread.

mods:
  - digest: {model: small}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from hubbub.config.agents import ModelConfig
from hubbub.config.units import Size, Span
from hubbub.errors import OperationError, StoreUnavailable, UserError
from hubbub.logs import get_logger
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.digest.schemas import (
    Digest,
    DigestFor,
    DigestItem,
    DigestSource,
    Line,
    MarkVisit,
    SpeakerCount,
    ThreadDigest,
    Visit,
    WaitingItem,
)
from hubbub.mods.digest.writer import SummaryLimits, Writer
from hubbub.mods.fields import time_of
from hubbub.mods.operation import Calling, Commit, Statement, bad_request, operation
from hubbub.protocol.control import Approvals, Requests
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import ThreadList
from hubbub.wording import shortened

__all__ = ["DigestConfig", "DigestMod"]


log = get_logger(__name__)


class DigestConfig(ModConfig):
    model: Annotated[str | ModelConfig | None, Field(union_mode="left_to_right")] = None
    """The model that summarizes threads: a name from `models`, or an endpoint (`{model: …,
    base_url: …, api_key: …}`). Default: no summaries."""
    characters: Size = 12_000
    """Maximum number of characters per thread that the model reads, the latest messages first."""
    timeout: Span = 20.0
    """Seconds for all summaries of one digest. Later ones are left out."""
    daily: Annotated[int, Field(ge=0)] = 200
    """Maximum number of model requests per day (UTC) for the whole network."""


MAX_EXCERPT = 200
"""Characters of a message shown in a digest."""
MAX_SPEAKERS = 10


@dataclass(frozen=True, slots=True)
class UnreadMessages:
    """The new messages of a thread, at least one of them from others."""

    messages: Sequence[Message]
    """New messages from others, oldest first."""
    with_own: Sequence[Message]
    """All new messages, including the reader's own."""
    counted: bool
    """Whether these are all new messages of the thread."""


def thread_digest(new: UnreadMessages, reader: str) -> ThreadDigest:
    messages = new.messages
    speakers = Counter(message.sender_id for message in messages).most_common(MAX_SPEAKERS)
    return ThreadDigest(
        thread_id=messages[0].thread_id,
        type=messages[0].type,
        count=len(messages),
        counted=new.counted,
        speakers=tuple(SpeakerCount(id=id, count=count) for id, count in speakers),
        mentions=sum(reader in message.mentions for message in messages),
        first=line(messages[0]),
        last=line(messages[-1]),
    )


def line(message: Message) -> Line:
    return Line(
        id=message.id,
        by=message.sender_id,
        at=message.sent_at,
        text=excerpt(message.text),
        untrusted=message.untrusted,
    )


def excerpt(text: str) -> str:
    """The beginning of a text, in one line."""
    return shortened(" ".join(text[: MAX_EXCERPT * 2].split()), MAX_EXCERPT)


def question(new: UnreadMessages, reader: str) -> WaitingItem | None:
    """The last message that asks the reader a question, if the reader has not written since."""
    for message in reversed(new.with_own):
        if message.sender_id == reader:
            return None
        to_reader = message.type == "direct" or reader in message.mentions
        if to_reader and message.sender_kind != "system" and "?" in message.text:
            return WaitingItem(
                kind="question",
                id=message.id,
                thread_id=message.thread_id,
                by=message.sender_id,
                text=excerpt(message.text),
                untrusted=message.untrusted,
            )
    return None


PAGE = 100
MAX_MESSAGES = 300
"""Messages read per thread."""
MAX_THREADS = 50
"""Threads with new messages from which the most important ones are chosen."""
MAX_CHECKED = 1_000
"""Threads checked for new messages, the most recently active ones."""
MAX_WAITING = 50
MAX_ITEMS = 20
"""Items of one kind from one other mod."""
MIN_SUMMARIZED = 400
"""Threads with fewer characters are not summarized, because the digest itself shows that much."""

_VISIT = """
INSERT INTO digest_visit VALUES (?, ?, ?)
ON CONFLICT (participant) DO UPDATE SET seq = max(seq, excluded.seq), at = excluded.at
"""


@dataclass(frozen=True, slots=True)
class _Start:
    """The point after which messages count as new."""

    seq: int = 0
    """Messages after this log position are new."""
    at: float | None = None
    """Messages from this time on are new, regardless of read markers."""

    def includes(self, message: Message) -> bool:
        if self.at is not None:
            return message.sent_at.timestamp() >= self.at
        return message.seq > self.seq


class DigestMod(Mod):
    """A summary of activity since the reader's last visit: new messages by thread, mentions of the
    reader, items waiting for the reader, and decisions. With a model, threads are summarized.

    The last visit is the reader's read marker in a thread or the last digest marked with
    `mark_visit`, whichever is later.
    """

    name = "digest"
    Config = DigestConfig
    config: DigestConfig
    migrations = "tables"

    def __init__(self, config: DigestConfig):
        super().__init__(config)
        self._writer: Writer | None = None

    async def start(self) -> None:
        self._writer = self._make_writer(self.config)

    async def stop(self) -> None:
        if self._writer is not None:
            await self._writer.close()

    def reconfigure(self, config: ModConfig) -> None:
        assert isinstance(config, DigestConfig)
        before, self._writer = self._writer, self._make_writer(config)
        super().reconfigure(config)
        if before is not None:
            self.host.spawn(before.close())

    def _make_writer(self, config: DigestConfig) -> Writer | None:
        """Raises `UserError` for a model that the network does not have."""
        if config.model is None:
            return None
        named = isinstance(config.model, str)
        model = self.host.model(config.model) if isinstance(config.model, str) else config.model
        if model is None and named:
            raise UserError(f"mods.digest.model: `models` has no {config.model!r}")
        assert model is not None
        return Writer(self.host, model)

    # Digests ------------------------------------------------------------------------------

    @operation(cost=3.0)
    async def digest(self, call: Calling, args: DigestFor) -> Digest:
        """Summarize activity since your last visit: the new messages in each of your threads, the
        items waiting for you, and recent decisions. Call mark_visit afterwards, so that the next
        digest starts here."""
        upto = self.host.head
        start, since = await self._start(call, args)
        unread, more = await self._unread(call, args, start)
        unread.sort(key=lambda each: _sort_key(each, call.participant))
        chosen = unread[: args.limit]
        threads = [thread_digest(new, call.participant) for new in chosen]
        threads, note = await self._with_summaries(args, threads, chosen)
        waiting, decided, failed = await self._items(call, unread, since)
        if failed:
            missing = f"without contributions of mods that failed: {', '.join(failed)}"
            note = "; ".join(filter(None, (note, missing)))
        if args.threads:
            named = {self.host.thread(call, thread) for thread in args.threads}
            waiting = [each for each in waiting if each.thread_id in named]
            decided = [each for each in decided if each.thread in named]
        waiting, decided = waiting[:MAX_WAITING], decided[:MAX_WAITING]
        marks = [message.untrusted for new in unread for message in new.with_own]
        marks += [each.untrusted for each in waiting] + [each.untrusted for each in decided]
        return Digest(
            threads=tuple(threads),
            more=more or len(unread) > len(chosen),
            waiting=tuple(waiting),
            decided=tuple(excerpt(each.text) for each in decided),
            since=since,
            upto=upto,
            note=note,
            untrusted=any(marks),
        )

    @operation(permission="write", output=Visit, idempotent=True)
    def mark_visit(self, call: Calling, args: MarkVisit) -> Commit:
        """Mark a digest as read: your next digest starts after it. This does not mark threads as
        read."""
        if args.upto > self.host.head:
            raise bad_request(
                f"upto: {args.upto} is after the end of the log; use `upto` of a digest"
            )
        values = (call.participant, args.upto, self.host.now())
        return Commit([Statement(_VISIT, values)], Visit(upto=args.upto))

    async def _start(self, call: Calling, args: DigestFor) -> tuple[_Start, datetime | None]:
        """Where the digest starts, and the time of that if known."""
        if isinstance(args.since, datetime):
            return _Start(at=args.since.timestamp()), args.since
        sql = "SELECT seq, at FROM digest_visit WHERE participant = ?"
        rows = await self.host.rows(sql, call.participant)
        if not rows:
            return _Start(), None
        return _Start(seq=rows[0][0]), time_of(rows[0][1])

    # Messages -----------------------------------------------------------------------------

    async def _unread(
        self, call: Calling, args: DigestFor, start: _Start
    ) -> tuple[list[UnreadMessages], bool]:
        """The new messages by thread, and whether there may be more than were checked."""
        named = dict.fromkeys(self.host.thread(call, thread) for thread in args.threads)
        unread: list[UnreadMessages] = []
        if named:
            for thread in named:
                new = await self._unread_in(call.participant, thread, start)
                unread += [new] if new is not None else []
            return unread, False
        async for thread in self._active(call, start):
            if len(unread) == MAX_THREADS:
                return unread, True
            new = await self._unread_in(call.participant, thread, start)
            unread += [new] if new is not None else []
        return unread, False

    async def _active(self, call: Calling, start: _Start) -> AsyncIterator[str]:
        """The caller's threads with activity since then, the last active first."""
        before: int | None = None
        for _ in range(0, MAX_CHECKED, PAGE):
            page = await self.host.ask(call, "list_threads", before=before, limit=PAGE)
            assert isinstance(page, ThreadList)
            for thread in page.threads:
                last = thread.messages[-1]
                if not start.includes(last):
                    if last.imported:  # it has its original time
                        continue
                    return
                if start.at is not None or thread.head > thread.read:
                    yield thread.id
            if not page.more:
                return
            before = page.threads[-1].last_seq

    async def _unread_in(self, reader: str, thread: str, start: _Start) -> UnreadMessages | None:
        """The new messages of a thread. None if there are none from others."""
        read = 0 if start.at is not None else self.host.read_upto(reader, thread)
        messages: list[Message] = []
        before: int | None = None
        checked, complete = 0, False
        while checked < MAX_MESSAGES and not complete:
            page = await self.host.page(thread, before, PAGE)
            fresh = [m for m in page if m.tseq > read and start.includes(m)]
            messages[:0] = [m for m in fresh if m.amends is None and m.amended != "deleted"]
            checked += len(page)
            complete = len(fresh) < len(page) or not page or page[0].tseq == 1
            before = page[0].tseq if page else None
        others = [message for message in messages if message.sender_id != reader]
        if not others:
            return None
        return UnreadMessages(others, messages, counted=complete)

    # Items --------------------------------------------------------------------------------

    async def _items(
        self, call: Calling, unread: Sequence[UnreadMessages], since: datetime | None
    ) -> tuple[list[WaitingItem], list[DigestItem], list[str]]:
        """Items waiting for the caller, decisions, and the names of mods that failed."""
        waiting = await self._approvals_and_requests(call)
        ids = {each.id for each in waiting}
        questions = (question(new, call.participant) for new in unread)
        waiting += [each for each in questions if each is not None and each.id not in ids]
        after = 0.0 if since is None else since.timestamp()
        others, failed = await items_of(self.host.mods(), call, after, MAX_ITEMS)
        waiting += [_waiting_item(each) for each in others if each.kind == "waiting"]
        return waiting, [each for each in others if each.kind == "decided"], failed

    async def _approvals_and_requests(self, call: Calling) -> list[WaitingItem]:
        """Pending approvals that the caller can decide, and open requests to the caller."""
        approvals = await self.host.ask(call, "list_approvals", state="pending", limit=200)
        requests = await self.host.ask(call, "list_requests", own=True, state="open", limit=200)
        assert isinstance(approvals, Approvals)
        assert isinstance(requests, Requests)
        waiting = [
            WaitingItem(
                kind="approval",
                id=each.id,
                thread_id=each.thread_id,
                by=each.agent,
                text=excerpt(": ".join(filter(None, (each.tool, each.reason)))),
            )
            for each in approvals.approvals
            if each.may_decide
        ]
        return waiting + [
            WaitingItem(
                kind="request",
                id=each.id,
                thread_id=each.thread_id,
                by=each.requester,
                text=excerpt(each.task),
                untrusted=each.untrusted,
            )
            for each in requests.requests
            if each.worker == call.participant
        ]

    # Summaries ----------------------------------------------------------------------------

    async def _with_summaries(
        self, args: DigestFor, threads: Sequence[ThreadDigest], unread: Sequence[UnreadMessages]
    ) -> tuple[list[ThreadDigest], str]:
        if self._writer is None or not args.summaries:
            return list(threads), ""
        config = self.config
        limits = SummaryLimits(config.characters, config.timeout, config.daily)
        long: Mapping[str, Sequence[Message]] = {
            new.messages[0].thread_id: new.with_own
            for new in unread
            if sum(len(message.text) for message in new.with_own) >= MIN_SUMMARIZED
        }
        written = await self._writer.summaries(long, limits)
        summarized = [
            thread.model_copy(update={"summary": written.summaries.get(thread.thread_id, "")})
            for thread in threads
        ]
        return summarized, written.note


async def items_of(
    mods: Sequence[object], call: Calling, after: float, limit: int
) -> tuple[list[DigestItem], list[str]]:
    """The items of all mods, and the names of mods that failed. Raises `OperationError` and
    `StoreUnavailable`, which are not failures of a mod."""
    items: list[DigestItem] = []
    failed: list[str] = []
    for mod in mods:
        if not isinstance(mod, DigestSource):
            continue
        try:
            items += [DigestItem(*each) for each in await mod.news(call, after, limit)]
        except (OperationError, StoreUnavailable):
            raise
        except Exception:  # a third-party mod can raise anything
            log.exception("a mod failed to contribute to a digest", failed=mod.name)
            failed.append(mod.name)
    return items, failed


def _sort_key(new: UnreadMessages, reader: str) -> tuple[bool, bool, int]:
    """Mentions of the reader first, then direct threads, then the last active."""
    last = new.messages[-1]
    mentioned = any(reader in message.mentions for message in new.messages)
    return not mentioned, last.type != "direct", -last.seq


def _waiting_item(item: DigestItem) -> WaitingItem:
    return WaitingItem(
        kind="other",
        id=item.id,
        thread_id=item.thread,
        by="",
        text=excerpt(item.text),
        untrusted=item.untrusted,
    )
