"""A clock that stands still until a test moves it."""

from __future__ import annotations

__all__ = ["HandClock"]


class HandClock:
    """Moved by hand: `wall` is what `now` tells."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000.0
        self._stepped = 0.0

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.wall - self._stepped

    def set(self, by: float) -> None:
        """Somebody sets the clock: no time passes by that."""
        self.wall += by
        self._stepped += by
