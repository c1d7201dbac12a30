"""The mod `digest`: what happened since the last visit, thread by thread.

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
    WaitingKind,
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
    """What summarises threads: a name from `models`, or an endpoint (`{model: …, base_url: …,
    api_key: …}`). Left out: no summaries."""
    characters: Size = 12_000
    """Of one thread's messages that the model reads, the last ones."""
    timeout: Span = 20.0
    """For all summaries of one digest; what is not there by then is left out."""
    daily: Annotated[int, Field(ge=0)] = 200
    """Requests to the model in one day (UTC), of the whole network."""


SHORT = 200
"""Characters of a message that a digest shows."""
MOST_SPEAKERS = 10


@dataclass(frozen=True, slots=True)
class UnreadMessages:
    """What is new in a thread; at least one message of others."""

    messages: Sequence[Message]
    """Those of others, oldest first."""
    said: Sequence[Message]
    """All of them, the reader's own, too."""
    counted: bool
    """Whether these are all of them."""
    spoke: bool
    """Whether the reader has said something after them."""


def summary_of(new: UnreadMessages, reader: str) -> ThreadDigest:
    messages = new.messages
    speakers = Counter(message.sender_id for message in messages).most_common(MOST_SPEAKERS)
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
        text=in_short(message.text),
        outside=message.outside,
    )


def in_short(text: str) -> str:
    """The beginning, in one line."""
    return shortened(" ".join(text[: SHORT * 2].split()), SHORT)


def question(new: UnreadMessages, reader: str) -> WaitingItem | None:
    """The last of the messages that asks the reader something, if it has said nothing since."""
    if new.spoke:
        return None
    for message in reversed(new.messages):
        to_reader = message.type == "direct" or reader in message.mentions
        if to_reader and message.sender_kind != "system" and "?" in message.text:
            return WaitingItem(
                kind="question",
                id=message.id,
                thread_id=message.thread_id,
                by=message.sender_id,
                text=in_short(message.text),
            )
    return None


PAGE = 100
MOST_MESSAGES = 300
"""Messages of a thread that are looked at."""
MOST_THREADS = 50
"""Threads with news among which the most important ones are chosen."""
MOST_LOOKED = 1_000
"""Threads that are looked at, the most recently active ones."""
MOST_WAITING = 50
MOST_NEWS = 20
"""Things of one kind that one other mod tells."""
WORTH = 400
"""Characters of messages below which nothing is summed up: the digest shows as much by itself."""

_VISIT = """
INSERT INTO digest_visit VALUES (?, ?, ?)
ON CONFLICT (participant) DO UPDATE SET seq = max(seq, excluded.seq), at = excluded.at
"""


@dataclass(frozen=True, slots=True)
class _Begin:
    """From where on everything is new."""

    seq: int = 0
    """Behind this position of the log."""
    at: float | None = None
    """From this time on, in place of what the reader has read."""

    def includes(self, message: Message) -> bool:
        if self.at is not None:
            return message.sent_at.timestamp() >= self.at
        return message.seq > self.seq


class DigestMod(Mod):
    """What happened since the reader's last visit: thread by thread, who spoke, who mentioned the
    reader, what waits for it and what was decided; with summaries, if there is a model for them.

    A last visit is what the reader has marked as read in a thread, or the last digest that it
    marked with `mark_visit`, whichever is later.
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
        """Tell what happened since your last visit: the new messages of each of your threads in
        short, what waits for you, and what was decided. mark_visit remembers that you have had
        it."""
        upto = self.host.head
        begin, since = await self._begin(call, args)
        found, more = await self._news(call, args, begin)
        found.sort(key=lambda each: _weight(each, call.participant))
        chosen = found[: args.limit]
        threads = [summary_of(new, call.participant) for new in chosen]
        threads, note = await self._summed_up(args, threads, chosen)
        waiting, decided, failed = await self._waiting(call, found, since)
        if failed:
            left_out = f"without what these mods know, for they have failed: {', '.join(failed)}"
            note = "; ".join(filter(None, (note, left_out)))
        if args.threads:
            named = {self.host.thread(call, thread) for thread in args.threads}
            waiting = [each for each in waiting if each.thread_id in named]
            decided = [each for each in decided if each.thread in named]
        return Digest(
            threads=tuple(threads),
            more=more or len(found) > len(chosen),
            waiting=tuple(waiting[:MOST_WAITING]),
            decided=tuple(in_short(each.text) for each in decided[:MOST_WAITING]),
            since=since,
            upto=upto,
            note=note,
            outside=any(message.outside for new in found for message in new.said),
        )

    @operation(permission="write", output=Visit, idempotent=True)
    def mark_visit(self, call: Calling, args: MarkVisit) -> Commit:
        """Remember that you have had the digest up to here: your next one begins behind it. Threads
        are not marked as read by it."""
        if args.upto > self.host.head:
            raise bad_request(
                f"upto: the log ends at {self.host.head}, not at {args.upto}; say what digest gave"
            )
        values = (call.participant, args.upto, self.host.now())
        return Commit([Statement(_VISIT, values)], Visit(upto=args.upto))

    async def _begin(self, call: Calling, args: DigestFor) -> tuple[_Begin, datetime | None]:
        """From where on, and the time of that if it is known."""
        if isinstance(args.since, datetime):
            return _Begin(at=args.since.timestamp()), args.since
        sql = "SELECT seq, at FROM digest_visit WHERE participant = ?"
        rows = await self.host.rows(sql, call.participant)
        if not rows:
            return _Begin(), None
        return _Begin(seq=rows[0][0]), time_of(rows[0][1])

    # Messages -----------------------------------------------------------------------------

    async def _news(
        self, call: Calling, args: DigestFor, begin: _Begin
    ) -> tuple[list[UnreadMessages], bool]:
        """What is new in the threads, and whether there may be more than was looked at."""
        named = dict.fromkeys(self.host.thread(call, thread) for thread in args.threads)
        found: list[UnreadMessages] = []
        if named:
            for thread in named:
                new = await self._new(call.participant, thread, begin)
                found += [new] if new is not None else []
            return found, False
        async for thread in self._active(call, begin):
            if len(found) == MOST_THREADS:
                return found, True
            new = await self._new(call.participant, thread, begin)
            found += [new] if new is not None else []
        return found, False

    async def _active(self, call: Calling, begin: _Begin) -> AsyncIterator[str]:
        """The caller's threads that were active since, the last active first."""
        before: int | None = None
        for _ in range(0, MOST_LOOKED, PAGE):
            page = await self.host.ask(call, "list_threads", before=before, limit=PAGE)
            assert isinstance(page, ThreadList)
            for thread in page.threads:
                if not begin.includes(thread.messages[-1]):
                    return
                if begin.at is not None or thread.head > thread.read:
                    yield thread.id
            if not page.more:
                return
            before = page.threads[-1].last_seq

    async def _new(self, reader: str, thread: str, begin: _Begin) -> UnreadMessages | None:
        """What is new in a thread; None if others have said nothing."""
        read = 0 if begin.at is not None else self.host.read_upto(reader, thread)
        said: list[Message] = []
        before: int | None = None
        looked, whole = 0, False
        while looked < MOST_MESSAGES and not whole:
            page = await self.host.page(thread, before, PAGE)
            fresh = [m for m in page if m.tseq > read and begin.includes(m)]
            said[:0] = [m for m in fresh if m.amends is None and m.amended != "deleted"]
            looked += len(page)
            whole = len(fresh) < len(page) or not page or page[0].tseq == 1
            before = page[0].tseq if page else None
        others = [message for message in said if message.sender_id != reader]
        if not others:
            return None
        return UnreadMessages(others, said, counted=whole, spoke=said[-1].sender_id == reader)

    # What waits ---------------------------------------------------------------------------

    async def _waiting(
        self, call: Calling, found: Sequence[UnreadMessages], since: datetime | None
    ) -> tuple[list[WaitingItem], list[DigestItem], list[str]]:
        """What waits for the caller, what was decided, and the mods that could not tell."""
        waiting = await self._asked(call)
        asked = {each.id for each in waiting}
        questions = (question(new, call.participant) for new in found)
        waiting += [each for each in questions if each is not None and each.id not in asked]
        after = 0.0 if since is None else since.timestamp()
        others, failed = await items_of(self.host.mods(), call, after, MOST_NEWS)
        waiting += [_other(each) for each in others if each.kind == "waiting"]
        return waiting, [each for each in others if each.kind == "decided"], failed

    async def _asked(self, call: Calling) -> list[WaitingItem]:
        """Tool calls that the caller may decide about, and work that it was asked for."""
        approvals = await self.host.ask(call, "list_approvals", state="pending", limit=200)
        requests = await self.host.ask(call, "list_requests", state="open", limit=200)
        assert isinstance(approvals, Approvals)
        assert isinstance(requests, Requests)
        waiting: list[tuple[WaitingKind, str, str, str, str]] = [
            ("approval", a.id, a.thread_id, a.agent, ": ".join(filter(None, (a.tool, a.reason))))
            for a in approvals.approvals
            if a.may_decide
        ]
        waiting += [
            ("request", r.id, r.thread_id, r.requester, r.task)
            for r in requests.requests
            if r.worker == call.participant
        ]
        return [
            WaitingItem(kind=kind, id=id, thread_id=thread, by=by, text=in_short(text))
            for kind, id, thread, by, text in waiting
        ]

    # Summaries ----------------------------------------------------------------------------

    async def _summed_up(
        self, args: DigestFor, threads: Sequence[ThreadDigest], news: Sequence[UnreadMessages]
    ) -> tuple[list[ThreadDigest], str]:
        if self._writer is None or not args.summaries:
            return list(threads), ""
        config = self.config
        limits = SummaryLimits(config.characters, config.timeout, config.daily)
        worth: Mapping[str, Sequence[Message]] = {
            new.messages[0].thread_id: new.said
            for new in news
            if sum(len(message.text) for message in new.said) >= WORTH
        }
        written = await self._writer.summaries(worth, limits)
        summed_up = [
            thread.model_copy(update={"summary": written.summaries.get(thread.thread_id, "")})
            for thread in threads
        ]
        return summed_up, written.note


async def items_of(
    mods: Sequence[object], call: Calling, after: float, limit: int
) -> tuple[list[DigestItem], list[str]]:
    """The news of all mods that have some, and the names of those that have failed: one mod's
    failure is no reason to tell nothing of the others. Raises `OperationError` and
    `StoreUnavailable`, which are no failures of a mod."""
    told: list[DigestItem] = []
    failed: list[str] = []
    for mod in mods:
        if not isinstance(mod, DigestSource):
            continue
        try:
            told += [DigestItem(*each) for each in await mod.news(call, after, limit)]
        except (OperationError, StoreUnavailable):
            raise
        except Exception:  # a mod of others may raise anything
            log.exception("a mod has no news for a digest", failed=mod.name)
            failed.append(mod.name)
    return told, failed


def _weight(new: UnreadMessages, reader: str) -> tuple[bool, bool, int]:
    """What is smaller comes first: mentions of the reader, direct threads, the last active."""
    last = new.messages[-1]
    mentioned = any(reader in message.mentions for message in new.messages)
    return not mentioned, last.type != "direct", -last.seq


def _other(news: DigestItem) -> WaitingItem:
    return WaitingItem(
        kind="other", id=news.id, thread_id=news.thread, by="", text=in_short(news.text)
    )
