"""One timer for many deadlines, which fires at the earliest.

Services whose items expire (approvals, requests, takeovers) have one each. They set every deadline
with `at`, and check their items when called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hubbub.clock import Clock

__all__ = ["Timer"]

LOOK_EVERY_S = 60.0
"""Longest time between checks of the clock, as a machine can sleep or its clock can be set."""
AGAIN_S = 1.0
"""Seconds until the next call if something is still due because the disk refused it."""


class Timer:
    """Calls `due(now)` in the loop at the earliest deadline, never from within `at`.

    Deadlines are times of `clock.now()` (seconds since 1970). `due` handles everything due by `now`
    and returns the next deadline, or None; it can also call `at`.
    """

    def __init__(self, clock: Clock, due: Callable[[float], float | None]):
        self._clock, self._due = clock, due
        self._next: float | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._stopped = False

    def at(self, moment: float) -> None:
        """Add a deadline; one in the past fires as soon as possible."""
        if self._next is None or moment < self._next:
            self._next = moment
            self._arm()

    def look(self) -> None:
        """Check the time now, as the clock may have been set or moved by hand."""
        if not self._stopped:
            self._ring()

    def stop(self) -> None:
        """Make no more calls."""
        self._stopped = True
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._next is not None and not self._stopped:
            wait = min(max(0.0, self._next - self._clock.now()), LOOK_EVERY_S)
            self._handle = asyncio.get_running_loop().call_later(wait, self._ring)

    def _ring(self) -> None:
        now = self._clock.now()
        if self._next is not None and self._next <= now:
            self._next = None
            following = self._due(now)
            if following is not None:
                self.at(following if following > now else now + AGAIN_S)
        self._arm()
