"""The agent's inbox: its threads, and the wakes that wait for a turn. Pure.

Threads start from the state in `ready` and are updated by events; wakes are collected per thread
into turns. One turn runs per thread at a time; threads run in parallel up to `concurrency`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal, NamedTuple

from hubbub.protocol.frames import Event, Ready
from hubbub.protocol.messages import Message, PendingWake, ReplyNeed, ThreadSummary, Wake, amended

__all__ = [
    "KEPT_MESSAGES",
    "KEPT_THREADS",
    "MOST_INCOMING",
    "Inbox",
    "InboxThread",
    "Received",
    "SteerMode",
    "StillOpenWakes",
    "TurnPlan",
    "WakingMessage",
    "steer_mode",
]

MOST_INCOMING = 20
"""Messages that the prompt of one turn shows as incoming."""

SteerMode = Literal["steer", "queue", "interrupt"]
"""How a person's message in the thread of a running turn is treated."""


def steer_mode(message: Message, config: SteerMode) -> SteerMode:
    """How to treat a message that comes during a turn: a person's message may say so itself, or
    else the agent's config does. Messages of agents wait for the next turn."""
    return message.mode or config if message.by_person else "queue"


class WakingMessage(NamedTuple):
    """A message together with the wake that it triggered."""

    message: Message
    wake: Wake


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """A turn that may start now."""

    id: str
    thread_id: str
    incoming: tuple[Message, ...]
    """All messages that woke the agent, oldest first."""
    reasons: tuple[str, ...]
    """The reason code of each wake, in the order of `incoming`."""
    reply_required: bool
    resumed: bool = False
    """It was started earlier; the hub has a record of what it did."""
    was_parked: bool = False
    """It was started in this process and was parked to wait for a person."""
    original_request: Message | None = None
    """The message that made the agent delegate work whose result has now come back."""

    @property
    def reply_thread(self) -> str:
        """The thread that the turn answers in: where somebody is waiting for a reply."""
        return self.thread_id if self.original_request is None else self.original_request.thread_id

    @classmethod
    def of(
        cls, woken: Iterable[WakingMessage], started: str | None, *, was_parked: bool = False
    ) -> TurnPlan:
        """One turn for these wakes of one thread. `started` is its id if it was started before; a
        new turn gets its id from the wake with the lowest hop, the oldest of those.
        """
        ordered = sorted(woken, key=lambda w: w.message.seq)
        primary = min(ordered, key=lambda w: (w.message.hop, w.message.seq))
        return cls(
            id=started or primary.wake.turn,
            thread_id=primary.message.thread_id,
            incoming=tuple(w.message for w in ordered),
            reasons=tuple(w.wake.reason for w in ordered),
            reply_required=any(w.wake.reply == "required" for w in ordered),
            resumed=started is not None,
            was_parked=was_parked,
        )

    @property
    def woken(self) -> list[WakingMessage]:
        """The wakes that the turn started with, as far as a turn needs them."""
        reply: ReplyNeed = "required" if self.reply_required else "optional"
        return [
            WakingMessage(message, Wake(reason=reason, reply=reply, turn=self.id))
            for message, reason in zip(self.incoming, self.reasons, strict=True)
        ]

    @property
    def shown(self) -> tuple[Message, ...]:
        """The incoming messages that a prompt shows, in order: people's, then the newest."""
        if len(self.incoming) <= MOST_INCOMING:
            return self.incoming
        ranked = sorted(self.incoming, key=lambda m: (not m.by_person, -m.seq))
        return tuple(sorted(ranked[:MOST_INCOMING], key=attrgetter("seq")))

    @property
    def omitted(self) -> int:
        """Number of incoming messages that the prompt does not show."""
        return max(0, len(self.incoming) - MOST_INCOMING)

    def without(self, ids: Set[str]) -> TurnPlan:
        """The same turn as if these messages had not woken the agent."""
        kept = [(m, r) for m, r in zip(self.incoming, self.reasons, strict=True) if m.id not in ids]
        if not kept:
            return self
        incoming, reasons = zip(*kept, strict=True)
        return replace(self, incoming=incoming, reasons=reasons)


KEPT_AMENDMENTS = 200
"""Edits and deletions kept in memory per thread."""
KEPT_NOTICES = 200
"""Notices of the hub kept in memory per thread."""
KEPT_MESSAGES = 50
"""Messages kept in memory per thread: as many as a prompt may show."""
KEPT_THREADS = 1000
"""Threads kept in memory; a prompt shows at most 200."""


@dataclass(frozen=True, slots=True)
class InboxThread:
    """The last messages of a thread. Immutable: a change makes a new object."""

    id: str
    """Canonical."""
    messages: tuple[Message, ...]
    """At most `KEPT_MESSAGES`, oldest first, each in its latest edited form."""
    amendments: tuple[Message, ...] = ()
    """Edits and deletions from the same period, oldest first: at most `KEPT_AMENDMENTS`."""
    notices: tuple[Message, ...] = ()
    """Notices of the hub from the same period, oldest first: at most `KEPT_NOTICES`. They are kept
    to detect gaps, and are not part of the conversation."""

    @property
    def last_seq(self) -> int:
        return self.messages[-1].seq if self.messages else 0

    @property
    def entries(self) -> tuple[Message, ...]:
        """All log entries that are here, in no particular order."""
        return (*self.messages, *self.amendments, *self.notices)

    def latest(self, message: Message) -> Message:
        """A message of the thread with all known edits applied."""
        return amended(message, (a for a in self.amendments if _amends(a) == message.id))

    def is_complete(self, head: int, after: int) -> bool:
        """Whether no entry is missing between the first message and position `head`, nor between
        `after` (seq) and the first message. Positions within a thread have no gaps.
        """
        if not self.messages:
            return False
        first = self.messages[0]
        if first.seq > after and first.tseq > 1:
            return False  # the thread has earlier messages that are not here
        entries = [m.tseq for m in self.entries if m.tseq >= first.tseq]
        return max(entries) >= head and max(entries) - first.tseq == len(entries) - 1

    def adding(self, messages: Sequence[Message]) -> InboxThread:
        """The thread with these messages (oldest first, none of them here yet) in their places."""
        edits = [m for m in messages if m.amends is not None]
        notices = [m for m in messages if m.is_notice]
        fresh = [m for m in messages if m.amends is None and not m.is_notice]
        amendments = _in_order(self.amendments, edits)[-KEPT_AMENDMENTS:]
        kept_messages = _in_order(self.messages, fresh)[-KEPT_MESSAGES:]
        kept_notices = _in_order(self.notices, notices)[-KEPT_NOTICES:]
        if (amendments or kept_notices) and len(kept_messages) == KEPT_MESSAGES:
            amendments = tuple(a for a in amendments if a.seq > kept_messages[0].seq)
            kept_notices = tuple(n for n in kept_notices if n.seq > kept_messages[0].seq)
        if amendments:
            concerned = {_amends(a) for a in amendments}
            thread = InboxThread(self.id, (), amendments)
            kept_messages = tuple(
                thread.latest(m) if m.id in concerned else m for m in kept_messages
            )
        return InboxThread(self.id, kept_messages, amendments, kept_notices)


def _amends(message: Message) -> str | None:
    return message.amends.message_id if message.amends is not None else None


def _in_order(known: tuple[Message, ...], fresh: Sequence[Message]) -> tuple[Message, ...]:
    merged = (*known, *fresh)
    if fresh and known and fresh[0].seq < known[-1].seq:
        return tuple(sorted(merged, key=attrgetter("seq")))
    return merged


class InboxThreads:
    """Threads by canonical id; iteration yields the most recently active first."""

    def __init__(self) -> None:
        self._by_id: dict[str, InboxThread] = {}  # least recently active first

    def __iter__(self) -> Iterator[InboxThread]:
        threads = (self._by_id[id] for id in reversed(self._by_id))
        return (thread for thread in threads if thread.messages)

    def get(self, thread_id: str) -> InboxThread | None:
        return self._by_id.get(thread_id)

    def begin(self, summaries: Iterable[ThreadSummary]) -> None:
        """Take in the state that a connection starts with."""
        for summary in summaries:
            self._merge(summary.id, summary.messages)
        self._sort()

    def note(self, *messages: Message) -> None:
        """Add messages in their places; known ones are skipped."""
        for message in messages:
            newest = next((thread.last_seq for thread in self), 0)
            self._merge(message.thread_id, (message,))
            if message.seq < newest:
                self._sort()
        while len(self._by_id) > KEPT_THREADS:
            del self._by_id[next(iter(self._by_id))]

    def _merge(self, thread_id: str, messages: Sequence[Message]) -> None:
        """Add messages (oldest first) to a thread, which becomes the most recent one."""
        thread = self._by_id.get(thread_id, InboxThread(thread_id, ()))
        known = {m.seq for m in thread.entries}
        fresh = [m for m in messages if m.seq not in known]
        if any(m.amends is None and not m.is_notice for m in fresh):
            self._by_id.pop(thread_id, None)
        if fresh:  # an edit or a notice alone does not make the thread more recent
            self._by_id[thread_id] = thread.adding(fresh)

    def _sort(self) -> None:
        ordered = sorted(self._by_id.values(), key=attrgetter("last_seq"))
        self._by_id = {thread.id: thread for thread in ordered}


@dataclass(frozen=True, slots=True)
class StillOpenWakes:
    """After a reconnect: which earlier wakes have not ended at the hub in the meantime."""

    pending: Set[str]
    """Ids of the messages whose wakes are pending at the hub."""
    upto: int
    """The position up to which `pending` is complete; later messages count as open."""

    @classmethod
    def at(cls, ready: Ready) -> StillOpenWakes:
        return cls({pending.message.id for pending in ready.pending}, ready.cursor)

    def has(self, message: Message) -> bool:
        return message.seq > self.upto or message.id in self.pending


@dataclass(slots=True)
class WakeQueue:
    """The wakes of one thread, from which one turn at a time is made."""

    resumed: dict[str, list[WakingMessage]] = field(default_factory=dict)
    """Turns that were started before, by id: each is resumed exactly as it was."""
    collected: list[WakingMessage] = field(default_factory=list)
    """Wakes for the next new turn."""
    running: bool = False

    def next(self) -> list[WakingMessage]:
        """The wakes of the next turn; empty if there are none."""
        return next(iter(self.resumed.values()), self.collected)

    @property
    def urgency(self) -> tuple[bool, int]:
        """Sort key: threads in which a person waits come first, then the longest waiting."""
        woken = self.next()
        return not any(w.message.by_person for w in woken), min(w.message.seq for w in woken)

    def put(self, woken: WakingMessage, started: str | None) -> None:
        """Add a wake. `started`: the id of the turn that was already started with it, if any."""
        group = self.collected if started is None else self.resumed.setdefault(started, [])
        group.append(woken)

    def take(self) -> tuple[str | None, list[WakingMessage]]:
        """Remove the wakes of the next turn. Returns its id if it was started before, too."""
        if self.resumed:
            started = next(iter(self.resumed))
            return started, self.resumed.pop(started)
        woken, self.collected = self.collected, []
        return None, woken

    def amend(self, amendment: Message) -> None:
        """Apply an edit to the messages that wait here."""
        self.collected = [_amended(woken, amendment) for woken in self.collected]
        for id, several in self.resumed.items():
            self.resumed[id] = [_amended(woken, amendment) for woken in several]

    def drop(self, turns: Set[str]) -> None:
        """Remove turns that the hub has ended."""
        self.collected = [w for w in self.collected if w.wake.turn not in turns]
        self.resumed = {id: woken for id, woken in self.resumed.items() if id not in turns}

    def keep(self, still: StillOpenWakes) -> None:
        """Drop wakes that have ended; a turn that was started before is kept as a whole."""
        self.collected = [w for w in self.collected if still.has(w.message)]
        groups = self.resumed.items()
        self.resumed = {
            id: woken for id, woken in groups if any(still.has(w.message) for w in woken)
        }

    def __iter__(self) -> Iterator[WakingMessage]:
        for woken in self.resumed.values():
            yield from woken
        yield from self.collected


def _amended(woken: WakingMessage, amendment: Message) -> WakingMessage:
    if amendment.amends is None or amendment.amends.message_id != woken.message.id:
        return woken
    return woken._replace(message=amended(woken.message, (amendment,)))


Received = Literal["known", "noted", "queued", "ignored"]
"""The outcome of an event: seen before, no wake, a queued wake, or a wake by an ignored sender."""


class Inbox:
    """The threads and pending wakes of the agent `me`.

    `position` is the last stream position that was taken in.
    """

    def __init__(self, me: str, *, concurrency: int = 4, ignore_senders: Iterable[str] = ()):
        self.me = me
        self.position = 0
        self._concurrency = concurrency
        self._ignored = frozenset(ignore_senders)
        self._threads = InboxThreads()
        self._queues: dict[str, WakeQueue] = {}
        self._parked: set[str] = set()
        self._running = 0

    # What happened ------------------------------------------------------------------------------

    def begin(
        self, ready: Ready, claims: Callable[[Message, Wake], bool] = lambda message, wake: False
    ) -> list[PendingWake]:
        """Take in the state of a new connection. Returns the pending wakes of ignored senders.

        With `resumed: false` everything is forgotten, including running turns: the caller must have
        stopped them. `claims` is asked about pending wakes whose turns were not started; a claimed
        wake starts nothing.
        """
        if not ready.resumed:
            self._threads = InboxThreads()
            self._queues.clear()
            self._parked.clear()
            self._running = 0
            self.position = 0
        self._threads.begin(ready.threads)
        # What neither an event nor an earlier `ready` has brought.
        fresh = [p for p in ready.pending if p.message.seq > self.position]
        ignored: list[PendingWake] = []
        for pending in fresh:
            message, wake = pending.message, pending.wake
            if self.ignores(message.sender_id):
                ignored.append(pending)
            elif pending.started is not None or not claims(message, wake):
                self._queue(WakingMessage(message, wake), pending.started)
        self.position = max(self.position, ready.cursor)
        return ignored

    def receive(self, event: Event, *, claimed: bool = False) -> Received:
        """Take in an event. With `claimed`, it is an awaited answer and its wake starts nothing."""
        if event.seq <= self.position:
            return "known"
        self.position = event.seq
        self.note(event.message)
        if event.wake is None or claimed:
            return "noted"
        if self.ignores(event.message.sender_id):
            return "ignored"
        self._queue(WakingMessage(event.message, event.wake), None)
        return "queued"

    def requeue(self, message: Message, wake: Wake) -> None:
        """Queue a wake that was claimed, but has to start a turn after all."""
        self._queue(WakingMessage(message, wake), None)

    def note(self, *messages: Message) -> None:
        """Add messages to their threads, in their places, and apply edits; known ones are skipped.

        The agent's own messages come in this way, because the hub does not send them back.
        """
        self._threads.note(*messages)
        for message in messages:
            queue = self._queues.get(message.thread_id) if message.amends is not None else None
            if queue is not None:
                queue.amend(message)

    def drop(self, turns: Set[str]) -> None:
        for queue in self._queues.values():
            queue.drop(turns)
        self._forget_empty()

    def keep(self, still: StillOpenWakes) -> None:
        for queue in self._queues.values():
            queue.keep(still)
        self._forget_empty()

    # What to do ---------------------------------------------------------------------------------

    def next_turns(self, held: Set[str] = frozenset()) -> list[TurnPlan]:
        """The turns that may start now, which count as running from here on; none in `held`
        threads.

        Threads in which a person waits come first, then the longest waiting.
        """
        plans = []
        while self._running < self._concurrency:
            waiting = (q for t, q in self._queues.items() if t not in held)
            free = [q for q in waiting if not q.running and q.next()]
            if not free:
                break
            queue = min(free, key=lambda queue: queue.urgency)
            started, woken = queue.take()
            queue.running = True
            self._running += 1
            plans.append(TurnPlan.of(woken, started, was_parked=started in self._parked))
            self._parked.discard(plans[-1].id)
        return plans

    def resume(self, plan: TurnPlan) -> None:
        """Resume a parked turn, before newer wakes of its thread."""
        self._parked.add(plan.id)
        for woken in plan.woken:
            self._queue(woken, plan.id)

    def ended(self, thread_id: str) -> None:
        """The thread's turn has ended."""
        queue = self._queues.get(thread_id)
        if queue is None or not queue.running:
            return
        queue.running = False
        self._running -= 1
        if not queue.next():
            del self._queues[thread_id]

    def steering(
        self, thread_id: str, enters: Callable[[Message], bool] = lambda message: True
    ) -> list[WakingMessage]:
        """Messages that people sent since the thread's turn started, oldest first, provided that
        they wake the agent and `enters` accepts them. They stay queued for the next turn until
        `accept_steering` assigns them to the running one.
        """
        queue = self._queues.get(thread_id)
        if queue is None or not queue.running:
            return []
        waiting = [w for w in queue.collected if w.message.by_person and enters(w.message)]
        return sorted(waiting, key=lambda w: w.message.seq)[:MOST_INCOMING]

    def accept_steering(self, thread_id: str, woken: Iterable[WakingMessage]) -> None:
        """Assign these messages to the turn running in the thread."""
        queue, seqs = self._queues.get(thread_id), {w.message.seq for w in woken}
        if queue is not None:
            queue.collected = [w for w in queue.collected if w.message.seq not in seqs]

    @property
    def threads(self) -> Iterator[InboxThread]:
        """All threads, most recently active first."""
        return iter(self._threads)

    def ignores(self, sender: str) -> bool:
        return sender in self._ignored

    def thread(self, thread_id: str) -> InboxThread | None:
        return self._threads.get(thread_id)

    def messages(self, thread_id: str) -> Sequence[Message]:
        """The messages of a thread, oldest first; none of one that is not known."""
        thread = self.thread(thread_id)
        return thread.messages if thread is not None else ()

    def waiting(self, thread_id: str) -> int:
        return sum(1 for _ in self._queues.get(thread_id, ()))

    def _queue(self, woken: WakingMessage, started: str | None) -> None:
        thread = self._threads.get(woken.message.thread_id)
        if thread is not None and thread.amendments:  # it may have been edited while it was held
            woken = woken._replace(message=thread.latest(woken.message))
        self._queues.setdefault(woken.message.thread_id, WakeQueue()).put(woken, started)

    def _forget_empty(self) -> None:
        self._queues = {t: q for t, q in self._queues.items() if q.running or q.next()}
