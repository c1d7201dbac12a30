"""How much one participant may ask: a token bucket, time passed in."""

from __future__ import annotations

__all__ = ["TokenBucket"]


class TokenBucket:
    """Lets `burst` through at once and `rate` a second in the long run."""

    __slots__ = ("_burst", "_level", "_rate", "_since")

    def __init__(self, rate: float, burst: int, now: float):
        self._rate, self._burst = rate, float(burst)
        self._level, self._since = float(burst), now

    def take(self, now: float) -> float:
        """Take one: 0.0 if it was there, else the seconds until it will be (nothing is taken)."""
        level = min(self._burst, self._level + (now - self._since) * self._rate)
        self._since = now
        if level >= 1.0:
            self._level = level - 1.0
            return 0.0
        self._level = level
        return (1.0 - level) / self._rate
