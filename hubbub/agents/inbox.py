"""What an agent has in front of it: its threads, and the wakes that wait for a turn. Pure.

Threads are the state of `ready` brought up to date by events; wakes are collected per thread into
turns. One turn at a time per thread, threads beside each other up to `concurrency`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal, NamedTuple

from hubbub.protocol.frames import Event, Ready
from hubbub.protocol.messages import Message, PendingWake, ReplyNeed, Wake

__all__ = [
    "KEPT_MESSAGES",
    "KEPT_THREADS",
    "MOST_INCOMING",
    "Inbox",
    "Received",
    "Thread",
    "TurnPlan",
    "Woken",
]

KEPT_MESSAGES = 50
"""Messages of a thread that stay in memory: as many as a prompt may show."""
KEPT_THREADS = 1000
"""Threads that stay in memory; a prompt shows at most 200."""
MOST_INCOMING = 20
"""Messages that one turn is shown as incoming."""

Received = Literal["known", "noted", "queued", "ignored"]
"""What became of an event: repeated, no wake, a wake that waits for its turn, a wake that the
agent's `ignore_senders` keeps from it."""


@dataclass(frozen=True, slots=True)
class Thread:
    """The last messages of a thread. A changed thread is another object."""

    id: str
    """Canonical."""
    messages: tuple[Message, ...]
    """At most `KEPT_MESSAGES`, oldest first."""

    @property
    def last_seq(self) -> int:
        return self.messages[-1].seq if self.messages else 0


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

    @property
    def shown(self) -> tuple[Message, ...]:
        """The incoming messages that a prompt shows: people's first, then the newest; in order."""
        if len(self.incoming) <= MOST_INCOMING:
            return self.incoming
        ranked = sorted(self.incoming, key=lambda m: (m.sender_kind != "human", -m.seq))
        return tuple(sorted(ranked[:MOST_INCOMING], key=attrgetter("seq")))

    def without(self, ids: Set[str]) -> TurnPlan:
        """The same turn as if these messages had not woken the agent."""
        kept = [(m, r) for m, r in zip(self.incoming, self.reasons, strict=True) if m.id not in ids]
        if not kept:
            return self
        incoming, reasons = zip(*kept, strict=True)
        return replace(self, incoming=incoming, reasons=reasons)

    @property
    def omitted(self) -> int:
        """How many of the incoming messages are not shown."""
        return max(0, len(self.incoming) - MOST_INCOMING)


@dataclass(slots=True)
class _Queue:
    """The wakes of one thread."""

    resumed: dict[str, list[Woken]] = field(default_factory=dict)
    """Turns that had begun before, by id: each is taken up exactly as it was."""
    collected: list[Woken] = field(default_factory=list)
    """The next new turn."""
    running: bool = False

    def next(self) -> list[Woken]:
        return next(iter(self.resumed.values()), self.collected)

    def take(self) -> tuple[str | None, list[Woken]]:
        """The next turn's wakes, and its id if it had begun before."""
        if self.resumed:
            started = next(iter(self.resumed))
            return started, self.resumed.pop(started)
        woken, self.collected = self.collected, []
        return None, woken

    def all(self) -> Iterator[Woken]:
        for woken in self.resumed.values():
            yield from woken
        yield from self.collected


class Inbox:
    """The threads and the waiting wakes of the agent `me`.

    `position` is the last position of the stream that has been taken in.
    """

    def __init__(self, me: str, *, concurrency: int = 4, ignore_senders: Iterable[str] = ()):
        self.me = me
        self.position = 0
        self._concurrency = concurrency
        self._ignored = frozenset(ignore_senders)
        self._threads: dict[str, Thread] = {}  # least recently active first
        self._queues: dict[str, _Queue] = {}
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
            self._threads.clear()
            self._queues.clear()
            self._waited.clear()
            self._running = 0
            self.position = 0
        for summary in ready.threads:
            self._merge(summary.id, summary.messages)
        self._sort_threads()
        fresh = [p for p in ready.pending if self._is_news(p)]
        for message, wake, started in ((p.message, p.wake, p.started) for p in fresh):
            if self.ignores(message.sender_id):
                continue
            if started is not None or not claims(message, wake):
                self._queue(message, wake, started)
        self.position = max(self.position, ready.cursor)
        return [p for p in fresh if self.ignores(p.message.sender_id)]

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
        self._queue(event.message, event.wake, None)
        return "queued"

    def put_back(self, message: Message, wake: Wake) -> None:
        """A wake that was claimed shall start a turn after all."""
        self._queue(message, wake, None)

    def note(self, *messages: Message) -> None:
        """Add messages to their threads, wherever in the order they belong; known ones are skipped.

        The agent's own messages come in this way: the hub does not send them back.
        """
        for message in messages:
            newest = _last(self._threads)
            self._merge(message.thread_id, (message,))
            if message.seq < newest:
                self._sort_threads()
        while len(self._threads) > KEPT_THREADS:
            del self._threads[next(iter(self._threads))]

    # What to do ---------------------------------------------------------------------------------

    def next_turns(self, held: Set[str] = frozenset()) -> list[TurnPlan]:
        """The turns that may start now, which count as running from here on; none in threads that
        are `held`.

        Threads in which a person waits go first, then those that have waited longest.
        """
        plans = []
        while self._running < self._concurrency:
            waiting = ((t, q) for t, q in self._queues.items() if not q.running and q.next())
            free = [(t, q) for t, q in waiting if t not in held]
            if not free:
                break
            thread_id, queue = min(free, key=lambda item: _urgency(item[1].next()))
            started, woken = queue.take()
            queue.running = True
            self._running += 1
            waited = started in self._waited
            self._waited.discard(started or "")
            plans.append(replace(_plan(thread_id, woken, started), waited=waited))
        return plans

    def again(self, plan: TurnPlan) -> None:
        """A turn that has stopped to wait goes on, before what has come since is looked at."""
        reply: ReplyNeed = "required" if plan.reply_required else "optional"
        self._waited.add(plan.id)
        for message, reason in zip(plan.incoming, plan.reasons, strict=True):
            self._queue(message, Wake(reason=reason, reply=reply, turn=plan.id), plan.id)

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
        said = [w for w in queue.collected if _is_human(w) and enters(w.message)]
        return sorted(said, key=lambda w: w.message.seq)[:MOST_INCOMING]

    def steered(self, thread_id: str, woken: Iterable[Woken]) -> None:
        """These belong to the turn that runs in the thread, and start none of their own."""
        queue, seqs = self._queues.get(thread_id), {w.message.seq for w in woken}
        if queue is not None:
            queue.collected = [w for w in queue.collected if w.message.seq not in seqs]

    def drop(self, turns: Set[str]) -> None:
        """The hub has ended these turns before they began here: nothing waits for them."""
        for queue in self._queues.values():
            queue.collected = [w for w in queue.collected if w.wake.turn not in turns]
            queue.resumed = {id: w for id, w in queue.resumed.items() if id not in turns}
        self._forget_empty()

    def keep(self, pending: Set[str], upto: int) -> None:
        """Of what waits, and stands at `upto` or before, only these messages are still pending."""
        for queue in self._queues.values():
            queue.collected = [w for w in queue.collected if _is_open(w, pending, upto)]
            groups = queue.resumed.items()
            queue.resumed = {
                id: woken
                for id, woken in groups
                if any(_is_open(one, pending, upto) for one in woken)
            }
        self._forget_empty()

    def _forget_empty(self) -> None:
        over = [t for t, q in self._queues.items() if not q.running and not q.next()]
        for thread_id in over:
            del self._queues[thread_id]

    def ended(self, thread_id: str) -> None:
        """The turn of this thread is over."""
        queue = self._queues.get(thread_id)
        if queue is None or not queue.running:
            return
        queue.running = False
        self._running -= 1
        if not queue.next():
            del self._queues[thread_id]

    # What is known ------------------------------------------------------------------------------

    @property
    def threads(self) -> Iterator[Thread]:
        """All threads, the most recently active first."""
        return (self._threads[id] for id in reversed(self._threads))

    def ignores(self, sender: str) -> bool:
        """Whether messages of this participant start no turns."""
        return sender in self._ignored

    def thread(self, thread_id: str) -> Thread | None:
        """The thread with this canonical id."""
        return self._threads.get(thread_id)

    def waiting(self, thread_id: str) -> int:
        """How many wakes wait in a thread."""
        queue = self._queues.get(thread_id)
        return 0 if queue is None else sum(1 for _ in queue.all())

    # Inside -------------------------------------------------------------------------------------

    def _is_news(self, pending: PendingWake) -> bool:
        """Whether this process has not taken in the wake yet, by an event or an earlier `ready`."""
        return pending.message.seq > self.position

    def _queue(self, message: Message, wake: Wake, started: str | None) -> None:
        queue = self._queues.setdefault(message.thread_id, _Queue())
        group = queue.collected if started is None else queue.resumed.setdefault(started, [])
        group.append(Woken(message, wake))

    def _merge(self, thread_id: str, messages: Sequence[Message]) -> None:
        """Add messages (oldest first) to a thread, which becomes the last in order."""
        thread = self._threads.get(thread_id, Thread(thread_id, ()))
        known = {m.seq for m in thread.messages}
        fresh = [m for m in messages if m.seq not in known]
        if fresh:
            merged = (*thread.messages, *fresh)
            if fresh[0].seq < thread.last_seq:
                merged = tuple(sorted(merged, key=attrgetter("seq")))
            self._threads.pop(thread_id, None)
            self._threads[thread_id] = Thread(thread_id, merged[-KEPT_MESSAGES:])

    def _sort_threads(self) -> None:
        ordered = sorted(self._threads.values(), key=attrgetter("last_seq"))
        self._threads = {thread.id: thread for thread in ordered}


def _last(threads: dict[str, Thread]) -> int:
    """The position of the newest message; the threads are in order."""
    return threads[next(reversed(threads))].last_seq if threads else 0


def _is_open(woken: Woken, pending: Set[str], upto: int) -> bool:
    return woken.message.seq > upto or woken.message.id in pending


def _is_human(woken: Woken) -> bool:
    return woken.message.sender_kind == "human"


def _urgency(woken: list[Woken]) -> tuple[bool, int]:
    return not any(map(_is_human, woken)), min(w.message.seq for w in woken)


def _plan(thread_id: str, woken: list[Woken], started: str | None) -> TurnPlan:
    """One turn for these wakes: named by the one with the lowest hop, the oldest of those."""
    ordered = sorted(woken, key=lambda w: w.message.seq)
    primary = min(ordered, key=lambda w: (w.message.hop, w.message.seq))
    return TurnPlan(
        id=started or primary.wake.turn,
        thread_id=thread_id,
        incoming=tuple(w.message for w in ordered),
        reasons=tuple(w.wake.reason for w in ordered),
        reply_required=any(w.wake.reply == "required" for w in ordered),
        resumed=started is not None,
    )
