"""The threads of an agent, with their last messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from hubbub.protocol.messages import Message, ThreadSummary

__all__ = ["KEPT_MESSAGES", "KEPT_THREADS", "Thread", "Threads"]

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
    """At most `KEPT_MESSAGES`, oldest first."""

    @property
    def last_seq(self) -> int:
        return self.messages[-1].seq if self.messages else 0


class Threads:
    """By their canonical ids; iterating gives the most recently active first."""

    def __init__(self) -> None:
        self._by_id: dict[str, Thread] = {}  # least recently active first

    def __iter__(self) -> Iterator[Thread]:
        return (self._by_id[id] for id in reversed(self._by_id))

    def get(self, thread_id: str) -> Thread | None:
        return self._by_id.get(thread_id)

    def clear(self) -> None:
        self._by_id.clear()

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
        known = {m.seq for m in thread.messages}
        fresh = [m for m in messages if m.seq not in known]
        if fresh:
            merged = (*thread.messages, *fresh)
            if fresh[0].seq < thread.last_seq:
                merged = tuple(sorted(merged, key=attrgetter("seq")))
            self._by_id.pop(thread_id, None)
            self._by_id[thread_id] = Thread(thread_id, merged[-KEPT_MESSAGES:])

    def _sort(self) -> None:
        ordered = sorted(self._by_id.values(), key=attrgetter("last_seq"))
        self._by_id = {thread.id: thread for thread in ordered}
