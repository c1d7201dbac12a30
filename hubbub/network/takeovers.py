"""Which agents a person speaks for, and until when. Pure memory; leases end by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hubbub.clock import SteadyClock
from hubbub.network.stored import StoredTakeover

__all__ = ["TAKEOVER", "Takeovers"]

TAKEOVER = "takeover"
"""The scope of a takeover among what stands."""


class Takeovers:
    """Leases by agent. One that is past its time counts for nothing, whoever notices first."""

    def __init__(self, stored: Iterable[StoredTakeover], clock: SteadyClock):
        self._clock = clock
        self._held: dict[str, StoredTakeover] = {}
        self.standing: set[tuple[str, str]] = set()
        """As in `StandingStops`, which shares it; those included whose time has passed."""
        self._ends: dict[str, float] = {}
        """When they end, by the clock: the dates that they bear may come sooner or later."""
        for lease in stored:
            self.put(lease)

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self._held)

    def __iter__(self) -> Iterator[StoredTakeover]:
        """Those whose time has not passed."""
        return iter([lease for lease in self._held.values() if not self._is_over(lease)])

    def get(self, agent: str) -> StoredTakeover | None:
        """The lease on the agent, if its time has not passed."""
        lease = self._held.get(agent)
        return None if lease is None or self._is_over(lease) else lease

    def holder(self, agent: str) -> str | None:
        """The person who speaks for the agent."""
        lease = self.get(agent)
        return lease.by if lease is not None else None

    def held_by(self, person: str) -> list[str]:
        """The agents that the person speaks for."""
        return [lease.agent for lease in self if lease.by == person]

    def put(self, lease: StoredTakeover) -> None:
        """In place of an earlier one on the agent."""
        self._held[lease.agent] = lease
        self.standing.add((TAKEOVER, lease.agent))
        self._ends[lease.agent] = self._clock.moment(lease.until)

    def drop(self, agent: str) -> StoredTakeover | None:
        """Forget the lease on the agent, whether its time has passed or not, and give it back."""
        self._ends.pop(agent, None)
        self.standing.discard((TAKEOVER, agent))
        return self._held.pop(agent, None)

    def expired(self) -> list[StoredTakeover]:
        """Those whose time has passed and which nobody has ended."""
        return [lease for lease in self._held.values() if self._is_over(lease)]

    def next_end(self) -> float | None:
        """When the next one ends, by the clock that was given."""
        return min(self._ends.values(), default=None)

    def _is_over(self, lease: StoredTakeover) -> bool:
        return self._ends[lease.agent] <= self._clock.now()
