"""A client's position in its stream: events received, handed out and acknowledged. Pure.

    acked <= handed <= received

When the client resumes, the hub repeats everything after `acked`; events up to `received` are then
duplicates. `prev` of each event proves that nothing is missing between two of them.
"""

from __future__ import annotations

from enum import Enum, auto

from hubbub.protocol.frames import Cursor, Event, Ready

__all__ = ["Stream", "Verdict"]


class Verdict(Enum):
    """The result of checking an event."""

    NEW = auto()
    KNOWN = auto()
    """A duplicate: received before the connection was lost, and not acknowledged."""
    GAP = auto()
    """An event before it is missing, so the connection is not reliable."""


class Stream:
    """The positions of one client."""

    def __init__(self, cursor: Cursor | None = None):
        """`cursor`: where an earlier instance of this client stopped."""
        self._asked = cursor
        self._epoch: str | None = None
        self._run: str | None = None
        self._last = 0  # position of the last event of this connection
        self.received = self.handed = self.acked = 0

    @property
    def cursor(self) -> Cursor | None:
        """Where to resume: the last acknowledged position, or None for the hub's own cursor."""
        if self._epoch is None:
            return self._asked
        return Cursor(epoch=self._epoch, seq=self.acked, run=self._run)

    @property
    def resume(self) -> Cursor | None:
        """The cursor for this instance, which includes the received position."""
        if self.cursor is None or self.received <= self.acked:
            return self.cursor
        return self.cursor.model_copy(update={"received": self.received})

    @property
    def tellable(self) -> int:
        """The position that can be acknowledged now: not beyond what was sent on this
        connection."""
        return min(self.acked, self._last)

    def begin(self, epoch: str, ready: Ready, run: str | None = None) -> Ready:
        """Start a connection. Returns the `ready` for the consumer.

        It has `resumed: false` even if the hub resumed but starts beyond the received position, as
        a partial recovery must not look complete.
        """
        self._last = ready.cursor
        self._run = run
        first = self._epoch is None
        if not first and ready.resumed and epoch == self._epoch and ready.cursor <= self.received:
            return ready
        self._epoch = epoch
        self.received = self.handed = self.acked = ready.cursor
        return ready if first else ready.model_copy(update={"resumed": False})

    def receive(self, event: Event) -> Verdict:
        """Check an event, and advance unless it shows a gap."""
        if event.prev != self._last or event.seq <= event.prev:
            return Verdict.GAP
        self._last = event.seq
        if event.seq <= self.received:
            return Verdict.KNOWN
        self.received = event.seq
        return Verdict.NEW

    def hand_out(self, seq: int) -> None:
        """Record that the consumer has the event at `seq`."""
        self.handed = seq

    def ack(self, seq: int) -> bool:
        """Whether the acknowledgement moves the cursor.

        A position that was not handed out belongs to an earlier stream, and is ignored.
        """
        if not self.acked < seq <= self.handed:
            return False
        self.acked = seq
        return True
