"""How much one participant may ask, time passed in, and how many connections there may be."""

from __future__ import annotations

from collections import Counter

__all__ = ["ConnectionCount", "TokenBucket"]


class ConnectionCount:
    """Counts connections, and by address those that have not identified."""

    def __init__(self, in_all: int, strangers: int):
        self._in_all, self._most_strangers = in_all, strangers
        self._open = 0
        self._strangers: Counter[str] = Counter()

    def enter(self, address: str) -> str | None:
        """One more connection, a stranger's: why it is one too many, if it is."""
        self._open += 1
        self._strangers[address] += 1
        if self._strangers[address] > self._most_strangers:
            return (
                f"too many connections from {address} that have not identified, at most "
                f"{self._most_strangers} (network.limits.strangers); come back later"
            )
        if self._open > self._in_all:
            return (
                f"too many connections, at most {self._in_all} (network.limits.connections); "
                "come back later"
            )
        return None

    def identified(self, address: str) -> None:
        """A stranger has said who it is."""
        self._strangers[address] -= 1
        if not self._strangers[address]:
            del self._strangers[address]

    def leave(self, address: str, *, stranger: bool) -> None:
        self._open -= 1
        if stranger:
            self.identified(address)


class TokenBucket:
    """Lets `burst` through at once and `rate` a second in the long run."""

    __slots__ = ("_burst", "_level", "_rate", "_since")

    def __init__(self, rate: float, burst: int, now: float):
        self._rate, self._burst = rate, float(burst)
        self._level, self._since = float(burst), now

    def take(self, now: float, cost: float = 1.0) -> float:
        """Take `cost`: 0.0 if it was there, else the seconds until it is (nothing is taken)."""
        level = self._level + (now - self._since) * self._rate
        if level > self._burst:
            level = self._burst
        self._since = now
        if level >= cost:
            self._level = level - cost
            return 0.0
        self._level = level
        return (cost - level) / self._rate
