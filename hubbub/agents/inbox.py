"""What an agent has in front of it: its threads, and the wakes that wait for a turn. Pure.

Events go in, turns come out. Threads are the state of `ready` brought up to date by events; wakes
are collected per thread into turns. One turn at a time per thread, threads beside each other up to
`concurrency`.
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
    "Received",
    "StillOpen",
    "Thread",
    "Threads",
    "TurnPlan",
    "WakeQueue",
    "Woken",
    "by_person",
]

MOST_INCOMING = 20
"""Messages that one turn is shown as incoming."""


def by_person(message: Message) -> bool:
    """Whether a person says it, in its own name or for an agent."""
    return message.sender_kind == "human" or message.spoken_by is not None


class Woken(NamedTuple):
    """A message, and what it asks of the agent that it wakes."""

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
    """It had begun before: the hub has what it did."""
    waited: bool = False
    """It had begun in this process, and stopped to wait for a person."""
    handed_on: Message | None = None
    """The message because of which the agent handed on work that has now come back."""

    @property
    def answers_in(self) -> str:
        """The thread in which somebody waits for what the turn has to say."""
        return self.thread_id if self.handed_on is None else self.handed_on.thread_id

    @classmethod
    def of(cls, woken: Iterable[Woken], started: str | None, *, waited: bool = False) -> TurnPlan:
        """One turn for these wakes of one thread. `started` is its id if it had begun before; a new
        one is named by the wake with the lowest hop, the oldest of those.
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
            waited=waited,
        )

    @property
    def woken(self) -> list[Woken]:
        """The wakes that it began with, as far as the turn needs to know them."""
        reply: ReplyNeed = "required" if self.reply_required else "optional"
        return [
            Woken(message, Wake(reason=reason, reply=reply, turn=self.id))
            for message, reason in zip(self.incoming, self.reasons, strict=True)
        ]

    @property
    def shown(self) -> tuple[Message, ...]:
        """The incoming messages that a prompt shows: people's first, then the newest; in order."""
        if len(self.incoming) <= MOST_INCOMING:
            return self.incoming
        ranked = sorted(self.incoming, key=lambda m: (not by_person(m), -m.seq))
        return tuple(sorted(ranked[:MOST_INCOMING], key=attrgetter("seq")))

    @property
    def omitted(self) -> int:
        """How many of the incoming messages are not shown."""
        return max(0, len(self.incoming) - MOST_INCOMING)

    def without(self, ids: Set[str]) -> TurnPlan:
        """The same turn as if these messages had not woken the agent."""
        kept = [(m, r) for m, r in zip(self.incoming, self.reasons, strict=True) if m.id not in ids]
        if not kept:
            return self
        incoming, reasons = zip(*kept, strict=True)
        return replace(self, incoming=incoming, reasons=reasons)


KEPT_AMENDMENTS = 200
"""Edits and deletions of a thread that stay in memory."""

KEPT_NOTICES = 200
"""Notices of the hub in a thread that stay in memory."""

KEPT_MESSAGES = 50
"""Messages of a thread that stay in memory: as many as a prompt may show."""
KEPT_THREADS = 1000
"""Threads that stay in memory; a prompt shows at most 200."""


@dataclass(frozen=True, slots=True)
class Thread:
    """The last messages of a thread. A changed thread is another object."""

    id: str
    """Canonical."""
    messages: tuple[Message, ...]
    """At most `KEPT_MESSAGES`, oldest first, each as its latest edit has it."""
    amendments: tuple[Message, ...] = ()
    """The edits and deletions among them and since, oldest first: at most `KEPT_AMENDMENTS`."""
    notices: tuple[Message, ...] = ()
    """Those of the hub among them and since, oldest first: at most `KEPT_NOTICES`. They are known,
    so that nothing is missing, and are no part of the conversation."""

    @property
    def last_seq(self) -> int:
        return self.messages[-1].seq if self.messages else 0

    @property
    def known(self) -> tuple[Message, ...]:
        """All of the log's entries that are here, in no order."""
        return (*self.messages, *self.amendments, *self.notices)

    def latest(self, message: Message) -> Message:
        """A message of the thread with what has been edited since, as far as that is known."""
        return amended(message, (a for a in self.amendments if _amends(a) == message.id))

    def is_whole(self, head: int, after: int) -> bool:
        """Whether nothing is missing from the first message to the position `head`, and nothing of
        the time since `after` (seq) before the first. Positions in a thread are dense."""
        if not self.messages:
            return False
        first = self.messages[0]
        if first.seq > after and first.tseq > 1:
            return False  # it was not known before, and it did not begin with this message
        known = [m.tseq for m in self.known if m.tseq >= first.tseq]
        return max(known) >= head and max(known) - first.tseq == len(known) - 1

    def with_more(self, messages: Sequence[Message]) -> Thread:
        """The thread with these messages (oldest first), of which it has none, wherever in the
        order they belong."""
        edits = [m for m in messages if m.amends is not None]
        notices = [m for m in messages if m.is_notice]
        said = [m for m in messages if m.amends is None and not m.is_notice]
        amendments = _in_order(self.amendments, edits)[-KEPT_AMENDMENTS:]
        merged = _in_order(self.messages, said)[-KEPT_MESSAGES:]
        told = _in_order(self.notices, notices)[-KEPT_NOTICES:]
        if (amendments or told) and len(merged) == KEPT_MESSAGES:
            amendments = tuple(a for a in amendments if a.seq > merged[0].seq)
            told = tuple(n for n in told if n.seq > merged[0].seq)
        if amendments:
            concerned = {_amends(a) for a in amendments}
            thread = Thread(self.id, (), amendments)
            merged = tuple(thread.latest(m) if m.id in concerned else m for m in merged)
        return Thread(self.id, merged, amendments, told)


def _amends(message: Message) -> str | None:
    return message.amends.message_id if message.amends is not None else None


def _in_order(known: tuple[Message, ...], fresh: Sequence[Message]) -> tuple[Message, ...]:
    merged = (*known, *fresh)
    if fresh and known and fresh[0].seq < known[-1].seq:
        return tuple(sorted(merged, key=attrgetter("seq")))
    return merged


class Threads:
    """By their canonical ids; iterating gives the most recently active first."""

    def __init__(self) -> None:
        self._by_id: dict[str, Thread] = {}  # least recently active first

    def __iter__(self) -> Iterator[Thread]:
        threads = (self._by_id[id] for id in reversed(self._by_id))
        return (thread for thread in threads if thread.messages)

    def get(self, thread_id: str) -> Thread | None:
        return self._by_id.get(thread_id)

    def begin(self, summaries: Iterable[ThreadSummary]) -> None:
        """Take in what a connection begins with."""
        for summary in summaries:
            self._merge(summary.id, summary.messages)
        self._sort()

    def note(self, *messages: Message) -> None:
        """Add messages wherever in the order they belong; known ones are skipped."""
        for message in messages:
            newest = next((thread.last_seq for thread in self), 0)
            self._merge(message.thread_id, (message,))
            if message.seq < newest:
                self._sort()
        while len(self._by_id) > KEPT_THREADS:
            del self._by_id[next(iter(self._by_id))]

    def _merge(self, thread_id: str, messages: Sequence[Message]) -> None:
        """Add messages (oldest first) to a thread, which becomes the last in order."""
        thread = self._by_id.get(thread_id, Thread(thread_id, ()))
        known = {m.seq for m in thread.known}
        fresh = [m for m in messages if m.seq not in known]
        if any(m.amends is None and not m.is_notice for m in fresh):
            self._by_id.pop(thread_id, None)
        if fresh:  # an edit or a notice alone leaves the thread where it stands in the order
            self._by_id[thread_id] = thread.with_more(fresh)

    def _sort(self) -> None:
        ordered = sorted(self._by_id.values(), key=attrgetter("last_seq"))
        self._by_id = {thread.id: thread for thread in ordered}


@dataclass(frozen=True, slots=True)
class StillOpen:
    """Of what was heard through an earlier connection: what has not ended at the hub meanwhile."""

    pending: Set[str]
    """Ids of the messages whose wakes are pending at the hub."""
    upto: int
    """The position that the hub spoke of; it says nothing about what comes after."""

    @classmethod
    def at(cls, ready: Ready) -> StillOpen:
        return cls({pending.message.id for pending in ready.pending}, ready.cursor)

    def has(self, message: Message) -> bool:
        return message.seq > self.upto or message.id in self.pending


@dataclass(slots=True)
class WakeQueue:
    """One turn at a time is made of them."""

    resumed: dict[str, list[Woken]] = field(default_factory=dict)
    """Turns that had begun before, by id: each is taken up exactly as it was."""
    collected: list[Woken] = field(default_factory=list)
    """The next new turn."""
    running: bool = False

    def next(self) -> list[Woken]:
        """The wakes of the next turn; empty if none waits."""
        return next(iter(self.resumed.values()), self.collected)

    @property
    def urgency(self) -> tuple[bool, int]:
        """Where a person waits goes first, then what has waited longest."""
        woken = self.next()
        return not any(by_person(w.message) for w in woken), min(w.message.seq for w in woken)

    def put(self, woken: Woken, started: str | None) -> None:
        """One more. `started`: the turn that had begun with it, if one had."""
        group = self.collected if started is None else self.resumed.setdefault(started, [])
        group.append(woken)

    def take(self) -> tuple[str | None, list[Woken]]:
        """The next turn's wakes, and its id if it had begun before."""
        if self.resumed:
            started = next(iter(self.resumed))
            return started, self.resumed.pop(started)
        woken, self.collected = self.collected, []
        return None, woken

    def amend(self, amendment: Message) -> None:
        """A message that waits here may have been edited."""
        self.collected = [_amended(woken, amendment) for woken in self.collected]
        for id, several in self.resumed.items():
            self.resumed[id] = [_amended(woken, amendment) for woken in several]

    def drop(self, turns: Set[str]) -> None:
        """These turns have ended before they began here."""
        self.collected = [w for w in self.collected if w.wake.turn not in turns]
        self.resumed = {id: woken for id, woken in self.resumed.items() if id not in turns}

    def keep(self, still: StillOpen) -> None:
        """Forget what has ended; of a turn that had begun before, all or nothing."""
        self.collected = [w for w in self.collected if still.has(w.message)]
        groups = self.resumed.items()
        self.resumed = {
            id: woken for id, woken in groups if any(still.has(w.message) for w in woken)
        }

    def __iter__(self) -> Iterator[Woken]:
        for woken in self.resumed.values():
            yield from woken
        yield from self.collected


def _amended(woken: Woken, amendment: Message) -> Woken:
    if amendment.amends is None or amendment.amends.message_id != woken.message.id:
        return woken
    return woken._replace(message=amended(woken.message, (amendment,)))


Received = Literal["known", "noted", "queued", "ignored"]
"""What became of an event: repeated, no wake, a wake that waits for its turn, a wake that the
agent's `ignore_senders` keeps from it."""


class Inbox:
    """The threads and the waiting wakes of the agent `me`.

    `position` is the last position of the stream that has been taken in.
    """

    def __init__(self, me: str, *, concurrency: int = 4, ignore_senders: Iterable[str] = ()):
        self.me = me
        self.position = 0
        self._concurrency = concurrency
        self._ignored = frozenset(ignore_senders)
        self._threads = Threads()
        self._queues: dict[str, WakeQueue] = {}
        self._waited: set[str] = set()
        self._running = 0

    # What happened ------------------------------------------------------------------------------

    def begin(
        self, ready: Ready, claims: Callable[[Message, Wake], bool] = lambda message, wake: False
    ) -> list[PendingWake]:
        """Take in the state of a connection. Returns the pending wakes of ignored senders.

        With `resumed: false` all that was known is forgotten, turns that run included: whoever runs
        them must stop them first. `claims` is asked about pending wakes whose turns have not begun;
        what it claims starts nothing.
        """
        if not ready.resumed:
            self._threads = Threads()
            self._queues.clear()
            self._waited.clear()
            self._running = 0
            self.position = 0
        self._threads.begin(ready.threads)
        # What this process has not taken in yet, by an event or an earlier `ready`.
        fresh = [p for p in ready.pending if p.message.seq > self.position]
        ignored: list[PendingWake] = []
        for pending in fresh:
            message, wake = pending.message, pending.wake
            if self.ignores(message.sender_id):
                ignored.append(pending)
            elif pending.started is not None or not claims(message, wake):
                self._queue(Woken(message, wake), pending.started)
        self.position = max(self.position, ready.cursor)
        return ignored

    def receive(self, event: Event, *, claimed: bool = False) -> Received:
        """Take in an event. A `claimed` one is somebody's answer: its wake starts nothing."""
        if event.seq <= self.position:
            return "known"
        self.position = event.seq
        self.note(event.message)
        if event.wake is None or claimed:
            return "noted"
        if self.ignores(event.message.sender_id):
            return "ignored"
        self._queue(Woken(event.message, event.wake), None)
        return "queued"

    def put_back(self, message: Message, wake: Wake) -> None:
        """A wake that was claimed shall start a turn after all."""
        self._queue(Woken(message, wake), None)

    def note(self, *messages: Message) -> None:
        """Add messages to their threads, wherever in the order they belong; known ones are skipped.

        The agent's own messages come in this way: the hub does not send them back. Edits and
        deletions change what is here, and have no place of their own.
        """
        self._threads.note(*messages)
        for message in messages:
            queue = self._queues.get(message.thread_id) if message.amends is not None else None
            if queue is not None:
                queue.amend(message)

    def drop(self, turns: Set[str]) -> None:
        """The hub has ended these turns before they began here: nothing waits for them."""
        for queue in self._queues.values():
            queue.drop(turns)
        self._forget_empty()

    def keep(self, still: StillOpen) -> None:
        """Of what waits, only this has not ended at the hub."""
        for queue in self._queues.values():
            queue.keep(still)
        self._forget_empty()

    # What to do ---------------------------------------------------------------------------------

    def next_turns(self, held: Set[str] = frozenset()) -> list[TurnPlan]:
        """The turns that may start now, which count as running from here on; none in threads that
        are `held`.

        Threads in which a person waits go first, then those that have waited longest.
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
            plans.append(TurnPlan.of(woken, started, waited=started in self._waited))
            self._waited.discard(plans[-1].id)
        return plans

    def again(self, plan: TurnPlan) -> None:
        """A turn that has stopped to wait goes on, before what has come since is looked at."""
        self._waited.add(plan.id)
        for woken in plan.woken:
            self._queue(woken, plan.id)

    def ended(self, thread_id: str) -> None:
        """The turn of this thread is over."""
        queue = self._queues.get(thread_id)
        if queue is None or not queue.running:
            return
        queue.running = False
        self._running -= 1
        if not queue.next():
            del self._queues[thread_id]

    def steering(
        self, thread_id: str, enters: Callable[[Message], bool] = lambda message: True
    ) -> list[Woken]:
        """What people have said since the thread's turn began, oldest first, as far as it wakes the
        agent and `enters`. It waits for the next turn unless `steered` says that it was let into
        this one.
        """
        queue = self._queues.get(thread_id)
        if queue is None or not queue.running:
            return []
        said = [w for w in queue.collected if by_person(w.message) and enters(w.message)]
        return sorted(said, key=lambda w: w.message.seq)[:MOST_INCOMING]

    def steered(self, thread_id: str, woken: Iterable[Woken]) -> None:
        """These belong to the turn that runs in the thread, and start none of their own."""
        queue, seqs = self._queues.get(thread_id), {w.message.seq for w in woken}
        if queue is not None:
            queue.collected = [w for w in queue.collected if w.message.seq not in seqs]

    @property
    def threads(self) -> Iterator[Thread]:
        """All threads, the most recently active first."""
        return iter(self._threads)

    def ignores(self, sender: str) -> bool:
        """Whether messages of this participant start no turns."""
        return sender in self._ignored

    def thread(self, thread_id: str) -> Thread | None:
        """The thread with this canonical id."""
        return self._threads.get(thread_id)

    def waiting(self, thread_id: str) -> int:
        """How many wakes wait in a thread."""
        return sum(1 for _ in self._queues.get(thread_id, ()))

    def _queue(self, woken: Woken, started: str | None) -> None:
        thread = self._threads.get(woken.message.thread_id)
        if thread is not None and thread.amendments:  # it may have been held, and edited meanwhile
            woken = woken._replace(message=thread.latest(woken.message))
        self._queues.setdefault(woken.message.thread_id, WakeQueue()).put(woken, started)

    def _forget_empty(self) -> None:
        self._queues = {t: q for t, q in self._queues.items() if q.running or q.next()}
