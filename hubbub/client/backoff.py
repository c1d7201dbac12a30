"""How long a client waits before it tries again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

__all__ = ["Backoff"]


@dataclass(frozen=True)
class Backoff:
    """Exponential delays with jitter, so that the clients of a restarted hub do not come as one."""

    first_s: float = 0.1
    most_s: float = 10.0
    retries: int = 8
    """How often a call is repeated that failed with a temporary error. With the delays above the
    last repetition is about 20 s after the first try."""
    steady_s: float = 10.0
    """A connection that held this long counts as good: the next delay is the first one again."""
    random: Callable[[], float] = random.random
    """Gives numbers in [0, 1)."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits for so many seconds."""

    def delay(self, attempt: int) -> float:
        """Seconds before attempt number `attempt` (from 0): half of it fixed, half of it chance."""
        longest = min(self.most_s, self.first_s * 2.0 ** min(attempt, 32))
        return longest * (0.5 + 0.5 * self.random())

    def after(self, told_s: float, attempt: int) -> float:
        """Seconds to wait when the hub named a delay: never less, at most half as much again."""
        return max(told_s * (1 + 0.5 * self.random()), self.delay(attempt))
