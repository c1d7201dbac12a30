"""Time as a parameter: code asks a `Clock`, tests pass one that they move by hand."""

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
    """What tells a time that goes on while the machine sleeps, where the system has it."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    return time.monotonic


class SystemClock:
    """The machine's clock."""

    now = staticmethod(time.time)
    monotonic = staticmethod(_since_boot())


class SteadyClock:
    """Another clock's time of day as it was at the beginning, and from then on what has passed:
    for waits. Who sets the clock makes none of them longer or shorter."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._began = clock.now() - clock.monotonic()
        self.monotonic = clock.monotonic

    def now(self) -> float:
        return self._began + self.monotonic()

    def moment(self, date: float, since: float | None = None) -> float:
        """When that date is, as the other clock stands now. With the date `since` which somebody
        waits for it: after that wait at the latest."""
        left = date - self._clock.now()
        return self.now() + (left if since is None else min(left, date - since))
