"""The threads of an agent, with their last messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from hubbub.protocol.amending import amended
from hubbub.protocol.messages import Message, ThreadSummary

__all__ = ["KEPT_MESSAGES", "KEPT_THREADS", "Thread", "Threads"]

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
        known = {m.seq for m in thread.known}
        fresh = [m for m in messages if m.seq not in known]
        if any(m.amends is None and not m.is_notice for m in fresh):
            self._by_id.pop(thread_id, None)
        if fresh:  # an edit or a notice alone leaves the thread where it stands in the order
            self._by_id[thread_id] = thread.with_more(fresh)

    def _sort(self) -> None:
        ordered = sorted(self._by_id.values(), key=attrgetter("last_seq"))
        self._by_id = {thread.id: thread for thread in ordered}
