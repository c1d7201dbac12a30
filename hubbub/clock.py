"""Time as a parameter: code asks a `Clock`, tests pass one that they move by hand."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Two times: `now` for people (s since 1970, UTC), `monotonic` for durations (s)."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
