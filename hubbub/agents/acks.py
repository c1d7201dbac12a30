"""What may be acknowledged: what is done, as far as nothing before it is open. Pure."""

from __future__ import annotations

__all__ = ["AckWindow"]


class AckWindow:
    """Events are opened in order and become done in any order."""

    def __init__(self) -> None:
        self._open: dict[int, None] = {}  # in order
        self._last = 0

    def opened(self, seq: int) -> None:
        """An event has arrived."""
        self._open[seq] = None
        self._last = max(self._last, seq)

    def done(self, seq: int) -> int:
        """The event needs nothing more. Returns the position up to which everything is done."""
        self._open.pop(seq, None)
        return next(iter(self._open)) - 1 if self._open else self._last
