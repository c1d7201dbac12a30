"""How often each participant has spoken lately."""

from __future__ import annotations

from collections import deque

__all__ = ["Window"]

SWEEP = 1024
"""So many participants are kept in mind before those who are silent are forgotten."""


class Window:
    """A sliding window: at most `most` in any span of `per` seconds, for each participant."""

    def __init__(self, most: int, per: float):
        self.most, self.per = most, per
        self._spoken: dict[str, deque[float]] = {}
        self._sweep_at = SWEEP

    def __len__(self) -> int:
        return len(self._spoken)

    def wait(self, who: str, now: float) -> float:
        """Seconds until there is room for one more; 0: there is."""
        spoken = self._spoken.get(who)
        if spoken is None or len(spoken) < self.most:
            return 0.0
        # A clock that was set back must not silence anybody for longer than the span.
        return min(self.per, max(0.0, spoken[0] + self.per - now))

    def count(self, who: str, now: float) -> None:
        """One more."""
        self._spoken.setdefault(who, deque(maxlen=self.most)).append(now)
        if len(self._spoken) > self._sweep_at:
            self._spoken = {w: s for w, s in self._spoken.items() if s[-1] + self.per > now}
            self._sweep_at = max(SWEEP, 2 * len(self._spoken))
