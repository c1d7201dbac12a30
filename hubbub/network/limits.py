"""Rate limits per participant, with the time passed in, and limits on connections."""

from __future__ import annotations

from collections import Counter

__all__ = ["ConnectionCount", "TokenBucket"]


class ConnectionCount:
    """Counts connections, and per address those that have not identified."""

    def __init__(self, in_all: int, strangers: int):
        self._in_all, self._most_strangers = in_all, strangers
        self._open = 0
        self._strangers: Counter[str] = Counter()

    def enter(self, address: str) -> str | None:
        """Count a new connection. Returns the reason to refuse it, or None."""
        self._open += 1
        self._strangers[address] += 1
        if self._strangers[address] > self._most_strangers:
            return (
                f"too many connections from {address} that have not identified, at most "
                f"{self._most_strangers} (network.limits.strangers); try again later"
            )
        if self._open > self._in_all:
            return (
                f"too many connections, at most {self._in_all} (network.limits.connections); "
                "try again later"
            )
        return None

    def identified(self, address: str) -> None:
        """A peer has identified."""
        self._strangers[address] -= 1
        if not self._strangers[address]:
            del self._strangers[address]

    def leave(self, address: str, *, stranger: bool) -> None:
        self._open -= 1
        if stranger:
            self.identified(address)


class TokenBucket:
    """Allows `burst` at once, and `rate` per second in the long run."""

    __slots__ = ("_burst", "_level", "_rate", "_since")

    def __init__(self, rate: float, burst: int, now: float):
        self._rate, self._burst = rate, float(burst)
        self._level, self._since = float(burst), now

    def take(self, now: float, cost: float = 1.0) -> float:
        """Take `cost` and return 0.0, or take nothing and return the seconds until it is
        available."""
        level = self._level + (now - self._since) * self._rate
        if level > self._burst:
            level = self._burst
        self._since = now
        if level >= cost:
            self._level = level - cost
            return 0.0
        self._level = level
        return (cost - level) / self._rate
