"""The breaker: how many turns began in each thread lately. Pure; times are seconds of any clock."""

from __future__ import annotations

from collections import OrderedDict, deque

from hubbub.config.budgets import BreakerConfig

__all__ = ["Breaker"]

MOST_THREADS = 10_000
"""Threads that are counted; the one in which a turn began longest ago is forgotten first."""


class Breaker:
    """Counts turns by thread in a sliding window."""

    def __init__(self, config: BreakerConfig):
        self._config = config
        self._begun: OrderedDict[str, deque[tuple[float, str]]] = OrderedDict()

    def count(self, thread_id: str, turn: str, now: float) -> int | None:
        """Count a turn that is about to begin; tells how many that makes if it is one too many.

        A turn counts once, however often it begins. Exactly `within` seconds ago no longer counts.
        """
        if not self._config.enabled:
            return None
        begun = self._begun.setdefault(thread_id, deque(maxlen=self._config.turns + 1))
        self._begun.move_to_end(thread_id)
        if len(self._begun) > MOST_THREADS:
            self._begun.popitem(last=False)
        while begun and begun[0][0] <= now - self._config.within:
            begun.popleft()
        if all(turn != counted for _, counted in begun):
            begun.append((now, turn))
        return len(begun) if len(begun) > self._config.turns else None

    def forget(self, thread_id: str) -> None:
        """Begin to count from nothing: the thread was released."""
        self._begun.pop(thread_id, None)
