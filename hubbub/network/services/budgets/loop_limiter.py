"""The loop limiter: two agents that only wake each other run out of breath. Pure.

a wakes b, b wakes a, a wakes b     three wakes of the pair, as many as it has
b wakes a                           kept from it until the oldest is old enough
a person wakes a (or b)             the count begins anew

What a person has set in motion is counted for itself: who works for many people at once is not
held up because others ask the same.
"""

from __future__ import annotations

import math

from hubbub.config.models import LoopLimitConfig

__all__ = ["LoopLimiter"]

MOST_PAIRS = 8192
"""Pairs that are remembered: then those whose wakes no longer count are looked for."""

Pair = tuple[str, str, int]
"""Two agents, and the interaction of a person in which they wake each other; 0: of no person."""


class LoopLimiter:
    """Counts the wakes between any two agents. Times are seconds of a clock that only goes on.

    Kept in memory alone: a hub that starts anew gives every pair a fresh breath.
    """

    def __init__(self, config: LoopLimitConfig):
        self._most, self._within, self._enabled = config.wakes, config.within, config.enabled
        self._pairs: dict[Pair, _Wakes] = {}
        self._spoken: dict[str, int] = {}
        """How often a person has woken the agent."""
        self._room = MOST_PAIRS

    def __len__(self) -> int:
        """Pairs that are remembered."""
        return len(self._pairs)

    def wake(self, sender: str, agent: str, now: float, interaction: int = 0) -> bool:
        """Count a wake of `agent` by the agent `sender`; False: it must not be made.

        `interaction`: the position of the message with which a person opened it; 0: an agent has.
        """
        if not self._enabled:
            return True
        pair = _pair(sender, agent, interaction)
        wakes = self._pairs.get(pair)
        spoken = self._spoken
        epoch = spoken.get(sender, 0) + spoken.get(agent, 0) if spoken else 0
        if wakes is None or wakes.epoch != epoch:
            if wakes is None and len(self._pairs) >= self._room:
                self._forget(now)
            told = -math.inf if wakes is None else wakes.told
            self._pairs[pair] = _Wakes(epoch, now, told)
            return True
        times = wakes.times
        if len(times) >= self._most:
            if times[0] > now - self._within:
                return False
            del times[0]
        times.append(now)
        return True

    def tells(self, sender: str, agent: str, now: float, interaction: int = 0) -> bool:
        """Whether it is to be told that the pair has no breath: once in the time that counts."""
        wakes = self._pairs.get(_pair(sender, agent, interaction))
        if wakes is None or wakes.told > now - self._within:
            return False
        wakes.told = now
        return True

    def was_told(self, sender: str, agent: str, now: float) -> bool:
        """Whether that was told, and not so long ago, of what agents have opened themselves."""
        wakes = self._pairs.get(_pair(sender, agent, 0))
        return wakes is not None and wakes.told > now - self._within

    def take_back(self, sender: str, agent: str, interaction: int = 0) -> None:
        """The last wake of the pair was not made after all."""
        wakes = self._pairs.get(_pair(sender, agent, interaction))
        if wakes is not None and wakes.times:
            wakes.times.pop()

    def person(self, agent: str) -> None:
        """A person's message wakes the agent."""
        if self._enabled:
            self._spoken[agent] = self._spoken.get(agent, 0) + 1

    def _forget(self, now: float) -> None:
        old = now - self._within
        self._pairs = {
            pair: wakes for pair, wakes in self._pairs.items() if wakes.times[-1:] > [old]
        }
        self._room = max(MOST_PAIRS, 2 * len(self._pairs))


def _pair(one: str, other: str, interaction: int) -> Pair:
    return (one, other, interaction) if one < other else (other, one, interaction)


class _Wakes:
    """The wakes of one pair since a person last woke either."""

    __slots__ = ("epoch", "times", "told")

    def __init__(self, epoch: int, now: float, told: float):
        self.epoch = epoch
        self.times = [now]
        self.told = told
        """When it was told that they have no breath."""
