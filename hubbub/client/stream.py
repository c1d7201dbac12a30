"""Where a client stands in its events: what it has received, handed out and acknowledged. Pure.

    acked <= handed <= received

The hub sends again whatever lies behind `acked` when the client resumes; what lies up to `received`
is then known already. `prev` of each event proves that nothing is missing between two of them.
"""

from __future__ import annotations

from enum import Enum, auto

from hubbub.protocol.frames import Cursor, Event, Ready

__all__ = ["Stream", "Verdict"]


class Verdict(Enum):
    """What an arriving event is."""

    NEW = auto()
    KNOWN = auto()
    """Received before the connection was lost; the hub repeats what was not acknowledged."""
    GAP = auto()
    """Something before it is missing: the connection cannot be trusted any more."""


class Stream:
    """The positions of one client."""

    def __init__(self, cursor: Cursor | None = None):
        """`cursor`: where an earlier life of this client stopped."""
        self._asked = cursor
        self._epoch: str | None = None
        self._run: str | None = None
        self._last = 0  # position of the last event of this connection
        self.received = self.handed = self.acked = 0

    @property
    def cursor(self) -> Cursor | None:
        """Where to resume: the last acknowledged position, or None to leave it to the hub."""
        if self._epoch is None:
            return self._asked
        return Cursor(epoch=self._epoch, seq=self.acked, run=self._run)

    @property
    def resume(self) -> Cursor | None:
        """The cursor for this client itself, which has seen what it was sent."""
        if self.cursor is None or self.received <= self.acked:
            return self.cursor
        return self.cursor.model_copy(update={"received": self.received})

    @property
    def tellable(self) -> int:
        """How far may be acknowledged: not beyond what the hub has sent on this connection."""
        return min(self.acked, self._last)

    def begin(self, epoch: str, ready: Ready, run: str | None = None) -> Ready:
        """A connection starts. Returns the `ready` for the consumer.

        It says `resumed: false` also when the hub believes it resumed but starts beyond what was
        received here: a partial recovery must not look whole.
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
        """Judge an event, and move on unless it shows a gap."""
        if event.prev != self._last or event.seq <= event.prev:
            return Verdict.GAP
        self._last = event.seq
        if event.seq <= self.received:
            return Verdict.KNOWN
        self.received = event.seq
        return Verdict.NEW

    def hand_out(self, seq: int) -> None:
        """The consumer has the event at `seq`."""
        self.handed = seq

    def ack(self, seq: int) -> bool:
        """Whether the acknowledgement moves the cursor.

        What was never handed out cannot be safe: such a position belongs to a stream that began
        before this one, and is passed over.
        """
        if not self.acked < seq <= self.handed:
            return False
        self.acked = seq
        return True
