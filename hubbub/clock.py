"""Time as a parameter: code uses a `Clock`, and tests pass one that they move by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

__all__ = ["Clock", "SteadyClock", "SystemClock"]


class Clock(Protocol):
    """Two times: `now` for people (s since 1970, UTC), `monotonic` for durations (s)."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...


def _since_boot() -> Callable[[], float]:
    """A clock that includes time asleep, if the system has one."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    return time.monotonic


class SystemClock:
    """The machine's clock."""

    now = staticmethod(time.time)
    monotonic = staticmethod(_since_boot())


class SteadyClock:
    """Another clock's time of day at the start, plus the elapsed time: for waits that setting the
    clock must not change."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._began = clock.now() - clock.monotonic()
        self.monotonic = clock.monotonic

    def now(self) -> float:
        return self._began + self.monotonic()

    def moment(self, date: float, since: float | None = None) -> float:
        """The time of that date, judged by the other clock now. With the start `since` of a wait
        for it, at most that wait from now."""
        left = date - self._clock.now()
        return self.now() + (left if since is None else min(left, date - since))
