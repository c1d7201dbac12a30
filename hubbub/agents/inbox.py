"""The agent's inbox: its threads, and the wakes waiting for a turn. Pure.

Threads start from the state in `ready` and are updated by events. Wakes are collected into turns,
per thread. One turn at a time runs in a thread, and up to `concurrency` threads run in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal, NamedTuple

from hubbub.protocol.frames import Event, Ready
from hubbub.protocol.messages import Message, PendingWake, ReplyNeed, ThreadSummary, Wake, amended

__all__ = [
    "MAX_INCOMING",
    "MAX_THREADS",
    "MAX_THREAD_MESSAGES",
    "Inbox",
    "InboxThread",
    "Received",
    "SteerMode",
    "StillOpenWakes",
    "TurnPlan",
    "WakingMessage",
    "steer_mode",
]

MAX_INCOMING = 20
"""Maximum number of incoming messages that the prompt of one turn shows."""

SteerMode = Literal["steer", "queue", "interrupt"]
"""How a person's message in the thread of a running turn is treated."""


def steer_mode(message: Message, config: SteerMode) -> SteerMode:
    """How to treat a message that arrives during a turn. A person's message can set its own mode;
    otherwise the agent's config applies. Messages from agents wait for the next turn."""
    return message.mode or config if message.by_person else "queue"


class WakingMessage(NamedTuple):
    """A message together with the wake that it triggered."""

    message: Message
    wake: Wake


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """A turn that can start now."""

    id: str
    thread_id: str
    incoming: tuple[Message, ...]
    """All messages that woke the agent, oldest first."""
    reasons: tuple[str, ...]
    """The reason code of each wake, in the order of `incoming`."""
    reply_required: bool
    resumed: bool = False
    """It was started earlier; the hub has its record."""
    was_parked: bool = False
    """It was started in this process and parked to wait for a person."""
    original_request: Message | None = None
    """The message that made the agent delegate the work whose result has now arrived."""

    @property
    def reply_thread(self) -> str:
        """The thread in which the turn's requester is waiting for a reply."""
        return self.thread_id if self.original_request is None else self.original_request.thread_id

    @classmethod
    def of(
        cls, woken: Iterable[WakingMessage], started: str | None, *, was_parked: bool = False
    ) -> TurnPlan:
        """One turn for these wakes of one thread. `started` is its id if it was started before; a
        new turn takes its id from the wake with the lowest hop, the oldest of several."""
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
        """The wakes that the turn started with, reduced to the fields that a turn needs."""
        reply: ReplyNeed = "required" if self.reply_required else "optional"
        return [
            WakingMessage(message, Wake(reason=reason, reply=reply, turn=self.id))
            for message, reason in zip(self.incoming, self.reasons, strict=True)
        ]

    @property
    def shown(self) -> tuple[Message, ...]:
        """The incoming messages that a prompt shows, oldest first: people's messages take
        precedence, then the newest."""
        if len(self.incoming) <= MAX_INCOMING:
            return self.incoming
        ranked = sorted(self.incoming, key=lambda m: (not m.by_person, -m.seq))
        return tuple(sorted(ranked[:MAX_INCOMING], key=attrgetter("seq")))

    @property
    def omitted(self) -> int:
        """Number of incoming messages that the prompt does not show."""
        return max(0, len(self.incoming) - MAX_INCOMING)

    def without(self, ids: Set[str]) -> TurnPlan:
        """The same turn, as if these messages had not woken the agent."""
        remaining = [
            (m, r) for m, r in zip(self.incoming, self.reasons, strict=True) if m.id not in ids
        ]
        if not remaining:
            return self
        incoming, reasons = zip(*remaining, strict=True)
        return replace(self, incoming=incoming, reasons=reasons)


MAX_THREAD_AMENDMENTS = 200
"""Edits and deletions held in memory per thread."""
MAX_THREAD_NOTICES = 200
"""Hub notices held in memory per thread."""
MAX_THREAD_MESSAGES = 50
"""Messages held in memory per thread: the most that a prompt can show."""
MAX_THREADS = 1000
"""Threads held in memory; a prompt shows at most 200."""


@dataclass(frozen=True, slots=True)
class InboxThread:
    """The last messages of a thread. Immutable."""

    id: str
    """Canonical."""
    messages: tuple[Message, ...]
    """At most `MAX_THREAD_MESSAGES`, oldest first, each in its latest edited form."""
    amendments: tuple[Message, ...] = ()
    """Edits and deletions from the same period, oldest first: at most `MAX_THREAD_AMENDMENTS`."""
    notices: tuple[Message, ...] = ()
    """Hub notices from the same period, oldest first: at most `MAX_THREAD_NOTICES`. They reveal
    gaps and are not part of the conversation."""

    @property
    def last_seq(self) -> int:
        return self.messages[-1].seq if self.messages else 0

    @property
    def entries(self) -> tuple[Message, ...]:
        """All log entries of the thread held here, unordered."""
        return (*self.messages, *self.amendments, *self.notices)

    def latest(self, message: Message) -> Message:
        """A message of the thread with all edits applied."""
        return amended(message, (a for a in self.amendments if _amended_id(a) == message.id))

    def is_complete(self, head: int, after: int) -> bool:
        """Whether all entries are present, from `after` (seq) to the first message, and from there
        to position `head`. Positions within a thread have no gaps.
        """
        if not self.messages:
            return False
        first = self.messages[0]
        if first.seq > after and first.tseq > 1:
            return False  # earlier messages of the thread are missing
        entries = [m.tseq for m in self.entries if m.tseq >= first.tseq]
        return max(entries) >= head and max(entries) - first.tseq == len(entries) - 1

    def with_messages(self, messages: Sequence[Message]) -> InboxThread:
        """The thread with these new messages (oldest first) merged in."""
        edits = [m for m in messages if m.amends is not None]
        notices = [m for m in messages if m.is_notice]
        fresh = [m for m in messages if m.amends is None and not m.is_notice]
        all_edits = _merge(self.amendments, edits)[-MAX_THREAD_AMENDMENTS:]
        all_messages = _merge(self.messages, fresh)[-MAX_THREAD_MESSAGES:]
        all_notices = _merge(self.notices, notices)[-MAX_THREAD_NOTICES:]
        if (all_edits or all_notices) and len(all_messages) == MAX_THREAD_MESSAGES:
            all_edits = tuple(e for e in all_edits if e.seq > all_messages[0].seq)
            all_notices = tuple(n for n in all_notices if n.seq > all_messages[0].seq)
        if all_edits:
            edited = {_amended_id(e) for e in all_edits}
            thread = InboxThread(self.id, (), all_edits)
            all_messages = tuple(thread.latest(m) if m.id in edited else m for m in all_messages)
        return InboxThread(self.id, all_messages, all_edits, all_notices)


def _amended_id(message: Message) -> str | None:
    return message.amends.message_id if message.amends is not None else None


def _merge(present: tuple[Message, ...], fresh: Sequence[Message]) -> tuple[Message, ...]:
    merged = (*present, *fresh)
    if fresh and present and fresh[0].seq < present[-1].seq:
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
        """Add the state that a connection starts with."""
        for summary in summaries:
            self._merge(summary.id, summary.messages)
        self._sort()

    def note(self, *messages: Message) -> None:
        """Add messages in order; duplicates are skipped."""
        for message in messages:
            newest = next((thread.last_seq for thread in self), 0)
            self._merge(message.thread_id, (message,))
            if message.seq < newest:
                self._sort()
        while len(self._by_id) > MAX_THREADS:
            del self._by_id[next(iter(self._by_id))]

    def _merge(self, thread_id: str, messages: Sequence[Message]) -> None:
        """Add messages (oldest first) to a thread, making it the most recent one."""
        thread = self._by_id.get(thread_id, InboxThread(thread_id, ()))
        present = {m.seq for m in thread.entries}
        fresh = [m for m in messages if m.seq not in present]
        if any(m.amends is None and not m.is_notice for m in fresh):
            self._by_id.pop(thread_id, None)
        if fresh:  # an edit or a notice alone does not make the thread more recent
            self._by_id[thread_id] = thread.with_messages(fresh)

    def _sort(self) -> None:
        ordered = sorted(self._by_id.values(), key=attrgetter("last_seq"))
        self._by_id = {thread.id: thread for thread in ordered}


@dataclass(frozen=True, slots=True)
class StillOpenWakes:
    """After a reconnect, the earlier wakes that the hub has not ended in the meantime."""

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
    """The wakes of one thread, taken one turn at a time."""

    resumed: dict[str, list[WakingMessage]] = field(default_factory=dict)
    """Turns started before, by id; each is resumed unchanged."""
    collected: list[WakingMessage] = field(default_factory=list)
    """Wakes for the next new turn."""
    running: bool = False

    def next(self) -> list[WakingMessage]:
        """The wakes of the next turn; empty if there are none."""
        return next(iter(self.resumed.values()), self.collected)

    @property
    def urgency(self) -> tuple[bool, bool, int]:
        """Sort key: turns started before first, as new ones may wait for what they hold; then
        threads in which a person is waiting, then the longest waiting.
        """
        woken, waits = self.next(), any(w.message.by_person for w in self.next())
        return not self.resumed, not waits, min(w.message.seq for w in woken)

    def put(self, woken: WakingMessage, started: str | None) -> None:
        """Add a wake. `started`: the id of the turn already started with it, if any."""
        group = self.collected if started is None else self.resumed.setdefault(started, [])
        group.append(woken)

    def take(self) -> tuple[str | None, list[WakingMessage]]:
        """Remove and return the wakes of the next turn, with its id if it was started before."""
        if self.resumed:
            started = next(iter(self.resumed))
            return started, self.resumed.pop(started)
        woken, self.collected = self.collected, []
        return None, woken

    def amend(self, amendment: Message) -> None:
        """Apply an edit to the queued messages."""
        self.collected = [_amended(woken, amendment) for woken in self.collected]
        for id, group in self.resumed.items():
            self.resumed[id] = [_amended(woken, amendment) for woken in group]

    def drop(self, turns: Set[str]) -> None:
        """Remove turns that the hub ended."""
        self.collected = [w for w in self.collected if w.wake.turn not in turns]
        self.resumed = {id: woken for id, woken in self.resumed.items() if id not in turns}

    def retain(self, still_open: StillOpenWakes) -> None:
        """Drop wakes that have ended. A turn started before is retained as a whole."""
        self.collected = [w for w in self.collected if still_open.has(w.message)]
        groups = self.resumed.items()
        self.resumed = {
            id: woken for id, woken in groups if any(still_open.has(w.message) for w in woken)
        }

    def __iter__(self) -> Iterator[WakingMessage]:
        for woken in self.resumed.values():
            yield from woken
        yield from self.collected


def _amended(woken: WakingMessage, amendment: Message) -> WakingMessage:
    if amendment.amends is None or amendment.amends.message_id != woken.message.id:
        return woken
    return woken._replace(message=amended(woken.message, (amendment,)))


Received = Literal["duplicate", "noted", "queued", "ignored"]
"""The outcome of an event: a duplicate, no wake, a queued wake, or a wake by an ignored sender."""


class Inbox:
    """The threads and pending wakes of the agent `me`.

    `position` is the last stream position received.
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

    # Incoming events ----------------------------------------------------------------------------

    def begin(
        self, ready: Ready, claims: Callable[[Message, Wake], bool] = lambda message, wake: False
    ) -> list[PendingWake]:
        """Start from the state of a new connection. Returns the pending wakes of ignored senders.

        With `resumed: false` all state is cleared, including running turns, which the caller must
        stop first. `claims` is called for pending wakes whose turns were not started; a claimed
        wake starts no turn.
        """
        if not ready.resumed:
            self._threads = InboxThreads()
            self._queues.clear()
            self._parked.clear()
            self._running = 0
            self.position = 0
        self._threads.begin(ready.threads)
        # Received neither by an event nor in an earlier `ready`.
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
        """Process an event. `claimed`: it is an awaited answer, so its wake starts no turn."""
        if event.seq <= self.position:
            return "duplicate"
        self.position = event.seq
        self.note(event.message)
        if event.wake is None or claimed:
            return "noted"
        if self.ignores(event.message.sender_id):
            return "ignored"
        self._queue(WakingMessage(event.message, event.wake), None)
        return "queued"

    def requeue(self, message: Message, wake: Wake) -> None:
        """Queue a claimed wake that needs a turn after all."""
        self._queue(WakingMessage(message, wake), None)

    def note(self, *messages: Message) -> None:
        """Add messages to their threads in order, and apply edits; duplicates are skipped.

        The agent's own messages are added here, because the hub does not send them back.
        """
        self._threads.note(*messages)
        for message in messages:
            queue = self._queues.get(message.thread_id) if message.amends is not None else None
            if queue is not None:
                queue.amend(message)

    def drop(self, turns: Set[str]) -> None:
        for queue in self._queues.values():
            queue.drop(turns)
        self._remove_empty_queues()

    def retain(self, still_open: StillOpenWakes) -> None:
        for queue in self._queues.values():
            queue.retain(still_open)
        self._remove_empty_queues()

    # Turns --------------------------------------------------------------------------------------

    def next_turns(self, held: Callable[[str], bool] = lambda thread: False) -> list[TurnPlan]:
        """Take the turns that can start now, none in `held` threads, in the order of their urgency;
        from then on they are running.
        """
        plans = []
        while self._running < self._concurrency:
            waiting = (q for t, q in self._queues.items() if not held(t))
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
        self, thread_id: str, accepts: Callable[[Message], bool] = lambda message: True
    ) -> list[WakingMessage]:
        """Messages from people since the thread's turn started, oldest first, that wake the agent
        and that `accepts` allows. They stay queued for the next turn until `accept_steering`
        assigns them to the running one.
        """
        queue = self._queues.get(thread_id)
        if queue is None or not queue.running:
            return []
        waiting = [w for w in queue.collected if w.message.by_person and accepts(w.message)]
        return sorted(waiting, key=lambda w: w.message.seq)[:MAX_INCOMING]

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
        """The messages of a thread, oldest first; empty if the thread is unknown."""
        thread = self.thread(thread_id)
        return thread.messages if thread is not None else ()

    def waiting(self, thread_id: str) -> int:
        return sum(1 for _ in self._queues.get(thread_id, ()))

    def _queue(self, woken: WakingMessage, started: str | None) -> None:
        thread = self._threads.get(woken.message.thread_id)
        if thread is not None and thread.amendments:  # possibly edited while it was held back
            woken = woken._replace(message=thread.latest(woken.message))
        self._queues.setdefault(woken.message.thread_id, WakeQueue()).put(woken, started)

    def _remove_empty_queues(self) -> None:
        self._queues = {t: q for t, q in self._queues.items() if q.running or q.next()}
