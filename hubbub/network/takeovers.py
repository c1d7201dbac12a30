"""Which agents a person speaks for, and until when. Pure memory; takeovers end by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hubbub.clock import SteadyClock
from hubbub.network.stored import StoredTakeover

__all__ = ["TAKEOVER", "Takeovers"]

TAKEOVER = "takeover"
"""The scope of a takeover among what stands."""


class Takeovers:
    """Takeovers by agent. One that is past its time counts for nothing, whoever notices first."""

    def __init__(self, stored: Iterable[StoredTakeover], clock: SteadyClock):
        self._clock = clock
        self._held: dict[str, StoredTakeover] = {}
        self.standing: set[tuple[str, str]] = set()
        """As in `StandingStops`, which shares it; those included whose time has passed."""
        self._ends: dict[str, float] = {}
        """When they end, by the clock: the dates that they bear may come sooner or later."""
        for takeover in stored:
            self.put(takeover)

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self._held)

    def __iter__(self) -> Iterator[StoredTakeover]:
        """Those whose time has not passed."""
        return iter([takeover for takeover in self._held.values() if not self._is_over(takeover)])

    def get(self, agent: str) -> StoredTakeover | None:
        """That of the agent, if its time has not passed."""
        takeover = self._held.get(agent)
        return None if takeover is None or self._is_over(takeover) else takeover

    def holder(self, agent: str) -> str | None:
        """The person who speaks for the agent."""
        takeover = self.get(agent)
        return takeover.by if takeover is not None else None

    def held_by(self, person: str) -> list[str]:
        """The agents that the person speaks for."""
        return [takeover.agent for takeover in self if takeover.by == person]

    def put(self, takeover: StoredTakeover) -> None:
        """In place of an earlier one on the agent."""
        self._held[takeover.agent] = takeover
        self.standing.add((TAKEOVER, takeover.agent))
        self._ends[takeover.agent] = self._clock.moment(takeover.until)

    def drop(self, agent: str) -> StoredTakeover | None:
        """Forget that of the agent, whether its time has passed or not, and give it back."""
        self._ends.pop(agent, None)
        self.standing.discard((TAKEOVER, agent))
        return self._held.pop(agent, None)

    def expired(self) -> list[StoredTakeover]:
        """Those whose time has passed and which nobody has ended."""
        return [takeover for takeover in self._held.values() if self._is_over(takeover)]

    def next_end(self) -> float | None:
        """When the next one ends, by the clock that was given."""
        return min(self._ends.values(), default=None)

    def _is_over(self, takeover: StoredTakeover) -> bool:
        return self._ends[takeover.agent] <= self._clock.now()
