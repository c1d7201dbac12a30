"""The inbox: events go in, turns come out.

Threads are the state of `ready` brought up to date by events; wakes are collected per thread into
turns. One turn at a time per thread, threads beside each other up to `concurrency`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Literal

from hubbub.agents.inbox.plan import MOST_INCOMING, TurnPlan, Woken, by_person
from hubbub.agents.inbox.queue import StillOpen, WakeQueue
from hubbub.agents.inbox.threads import Thread, Threads
from hubbub.protocol.frames import Event, Ready
from hubbub.protocol.messages import Message, PendingWake, Wake

__all__ = ["Inbox", "Received"]

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
            self._threads.clear()
            self._queues.clear()
            self._waited.clear()
            self._running = 0
            self.position = 0
        self._threads.begin(ready.threads)
        fresh = [p for p in ready.pending if self._is_news(p)]
        for message, wake, started in ((p.message, p.wake, p.started) for p in fresh):
            if self.ignores(message.sender_id):
                continue
            if started is not None or not claims(message, wake):
                self._queue(Woken(message, wake), started)
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

    # What is known ------------------------------------------------------------------------------

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

    # Inside -------------------------------------------------------------------------------------

    def _is_news(self, pending: PendingWake) -> bool:
        """Whether this process has not taken in the wake yet, by an event or an earlier `ready`."""
        return pending.message.seq > self.position

    def _queue(self, woken: Woken, started: str | None) -> None:
        thread = self._threads.get(woken.message.thread_id)
        if thread is not None and thread.amendments:  # it may have been held, and edited meanwhile
            woken = woken._replace(message=thread.latest(woken.message))
        self._queues.setdefault(woken.message.thread_id, WakeQueue()).put(woken, started)

    def _forget_empty(self) -> None:
        over = [t for t, q in self._queues.items() if not q.running and not q.next()]
        for thread_id in over:
            del self._queues[thread_id]
