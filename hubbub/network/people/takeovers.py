"""Which agents a person speaks for, and until when. Pure memory; leases end by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hubbub.network.stored import StoredTakeover

__all__ = ["Takeovers"]


class Takeovers:
    """Leases by agent. One that is past its time counts for nothing, whoever notices first."""

    def __init__(self, stored: Iterable[StoredTakeover], now: Callable[[], float]):
        """`now` tells seconds since the epoch."""
        self._now = now
        self._held = {lease.agent: lease for lease in stored}

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self._held)

    def __iter__(self) -> Iterator[StoredTakeover]:
        """Those whose time has not passed."""
        now = self._now()
        return iter([lease for lease in self._held.values() if lease.until > now])

    def get(self, agent: str) -> StoredTakeover | None:
        """The lease on the agent, if its time has not passed."""
        lease = self._held.get(agent)
        return lease if lease is not None and lease.until > self._now() else None

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

    def drop(self, agent: str) -> StoredTakeover | None:
        """Forget the lease on the agent, whether its time has passed or not, and give it back."""
        return self._held.pop(agent, None)

    def expired(self) -> list[StoredTakeover]:
        """Those whose time has passed and which nobody has ended."""
        now = self._now()
        return [lease for lease in self._held.values() if lease.until <= now]

    def next_end(self) -> float | None:
        """When the next one ends, in seconds since the epoch."""
        return min((lease.until for lease in self._held.values()), default=None)
