"""What is stopped: agents, threads or everything by people, threads also by the breaker; and which
agents a person speaks for, until when. Pure memory; what is durable about it is in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hubbub.clock import SteadyClock
from hubbub.errors import OperationError
from hubbub.network.stored import StoredStop, StoredTakeover
from hubbub.network.wakes import Reason
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode

__all__ = ["BREAKER", "StandingStops", "StandingTakeovers", "refusal"]

BREAKER = "breaker"
"""The scope of what the breaker stops."""


class StandingStops:
    """Asked for every wake: nearly always nothing is stopped, and that costs two looks."""

    def __init__(self, stored: Iterable[StoredStop], takeovers: StandingTakeovers | None = None):
        self._takeovers = takeovers
        self.standing: set[tuple[str, str]] = takeovers.standing if takeovers is not None else set()
        """Scope and target of all that holds, takeovers included: empty, nothing is in the way of
        anybody. To be looked at only."""
        self._held: dict[tuple[str, str], StoredStop] = {}
        for stop in stored:
            self.put(stop)

    def __iter__(self) -> Iterator[StoredStop]:
        """Those that hold, in the order in which they came."""
        return iter(tuple(self._held.values()))

    def put(self, stop: StoredStop) -> None:
        """In place of one of the same scope and target."""
        self._held[stop.scope, stop.target] = stop
        self.standing.add((stop.scope, stop.target))

    def get(self, scope: str, target: str) -> StoredStop | None:
        return self._held.get((scope, target))

    def lift(self, scope: str, target: str) -> None:
        """Forget a stop, if there is one."""
        self.standing.discard((scope, target))
        self._held.pop((scope, target), None)

    def of(self, agent: str, thread_id: str) -> Reason | None:
        """Why nothing may be done by the agent in the thread; None if nothing is in the way."""
        if self._held:
            found = self._stopped(agent, thread_id)
            if found is not None:
                return Reason.BREAKER_OPEN if found.scope == BREAKER else Reason.STOPPED
        if self._takeovers and self._takeovers.holder(agent) is not None:
            return Reason.TAKEN_OVER
        return None

    def refuse(self, agent: str, thread_id: str) -> None:
        """Raises `OperationError` if nothing may be done by the agent in the thread."""
        found = self._stopped(agent, thread_id)
        if found is not None:
            raise refusal(found)
        holder = self._takeovers.holder(agent) if self._takeovers else None
        if holder is not None:
            raise OperationError(
                ErrorCode.TAKEN_OVER,
                f"{holder} speaks for {agent} at present; nothing is to be done until "
                "it is handed back",
                details={"by": holder},
            )

    def stopper(self, stop: StoredStop) -> Callable[[str, str, str], bool]:
        """Whether this stop is in the way of an agent in a thread, whichever turn it is."""
        alone = StandingStops([stop])
        return lambda agent, thread_id, turn: alone.of(agent, thread_id) is not None

    def _stopped(self, agent: str, thread_id: str) -> StoredStop | None:
        held = self._held
        found = held.get(("all", "")) or held.get(("agent", agent))
        up: str | None = thread_id
        # A stop of a thread is one of all replies under it, or the storm would go on there.
        while found is None and up is not None:
            found = held.get(("thread", up)) or held.get((BREAKER, up))
            up = thread_ids.parent(up)
        return found


def refusal(stop: StoredStop) -> OperationError:
    """What is told to an agent that goes on all the same."""
    what = {"all": "everything", "agent": f"{stop.target}"}.get(stop.scope, "this thread")
    if stop.scope == BREAKER:
        text = f"the breaker has stopped this thread: {stop.turns} turns began in a short time"
    else:
        text = f"{stop.by} has stopped {what}" + (f": {stop.reason}" if stop.reason else "")
    details: dict[str, object] = {"scope": stop.scope, "target": stop.target, "by": stop.by}
    return OperationError(ErrorCode.STOPPED, text, details=details)


class StandingTakeovers:
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
        self.standing.add(("takeover", takeover.agent))
        self._ends[takeover.agent] = self._clock.moment(takeover.until)

    def drop(self, agent: str) -> None:
        """Forget that of the agent, whether its time has passed or not."""
        self._ends.pop(agent, None)
        self.standing.discard(("takeover", agent))
        self._held.pop(agent, None)

    def expired(self) -> list[StoredTakeover]:
        """Those whose time has passed and which nobody has ended."""
        return [takeover for takeover in self._held.values() if self._is_over(takeover)]

    def next_end(self) -> float | None:
        """When the next one ends, by the clock that was given."""
        return min(self._ends.values(), default=None)

    def _is_over(self, takeover: StoredTakeover) -> bool:
        return self._ends[takeover.agent] <= self._clock.now()
