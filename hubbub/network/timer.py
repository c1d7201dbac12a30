"""One alarm for many moments: called when the earliest of them has come.

Whoever keeps things that end by themselves (approvals, requests, takeovers) has one of these, names
each moment with `at`, and looks through what it keeps when it is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hubbub.clock import Clock

__all__ = ["Timer"]

LOOK_EVERY_S = 60.0
"""The time of day is looked at this often at least: a machine may sleep, and its clock be set."""
AGAIN_S = 1.0
"""Seconds until the next call when what was due is due still, because the disk refused it."""


class Timer:
    """Calls `due(now)` in the loop when the earliest moment has come, never from within `at`.

    Moments are those of `clock.now()` (seconds since 1970). `due` deals with all that is due by
    `now` and returns the next moment, or None if there is none; it may call `at` too.
    """

    def __init__(self, clock: Clock, due: Callable[[float], float | None]):
        self._clock, self._due = clock, due
        self._next: float | None = None
        self._handle: asyncio.TimerHandle | None = None
        self._stopped = False

    def at(self, moment: float) -> None:
        """Be called at that moment as well; one that has passed means as soon as possible."""
        if self._next is None or moment < self._next:
            self._next = moment
            self._arm()

    def look(self) -> None:
        """Look at the time now: the clock may have been set, or is one that is moved by hand."""
        if not self._stopped:
            self._ring()

    def stop(self) -> None:
        """Call no more."""
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
