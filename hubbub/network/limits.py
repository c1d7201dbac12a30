"""How much one participant may ask: a token bucket, time passed in."""

from __future__ import annotations

__all__ = ["TokenBucket"]


class TokenBucket:
    """Lets `burst` through at once and `rate` a second in the long run."""

    __slots__ = ("_burst", "_level", "_rate", "_since")

    def __init__(self, rate: float, burst: int, now: float):
        self._rate, self._burst = rate, float(burst)
        self._level, self._since = float(burst), now

    def take(self, now: float, cost: float = 1.0) -> float:
        """Take `cost`: 0.0 if it was there, else the seconds until it is (nothing is taken)."""
        level = min(self._burst, self._level + (now - self._since) * self._rate)
        self._since = now
        if level >= cost:
            self._level = level - cost
            return 0.0
        self._level = level
        return (cost - level) / self._rate
