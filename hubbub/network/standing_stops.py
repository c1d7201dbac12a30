"""Standing stops of agents, threads or everything by people, and of threads by the breaker; and
standing takeovers. In memory only; the store has the durable state.
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
"""The scope of stops by the breaker."""


class StandingStops:
    """The standing stops. Checked for every wake, so the usual case of no stops is cheap."""

    def __init__(self, stored: Iterable[StoredStop], takeovers: StandingTakeovers | None = None):
        self._takeovers = takeovers
        self.standing: set[tuple[str, str]] = takeovers.standing if takeovers is not None else set()
        """Scope and target of everything in force, including takeovers; empty if nothing is. Read
        only."""
        self._held: dict[tuple[str, str], StoredStop] = {}
        for stop in stored:
            self.put(stop)

    def __iter__(self) -> Iterator[StoredStop]:
        """The stops in force, in the order they were set."""
        return iter(tuple(self._held.values()))

    def put(self, stop: StoredStop) -> None:
        """Set a stop, replacing one of the same scope and target."""
        self._held[stop.scope, stop.target] = stop
        self.standing.add((stop.scope, stop.target))

    def get(self, scope: str, target: str) -> StoredStop | None:
        return self._held.get((scope, target))

    def lift(self, scope: str, target: str) -> None:
        """Forget a stop, if there is one."""
        self.standing.discard((scope, target))
        self._held.pop((scope, target), None)

    def of(self, agent: str, thread_id: str) -> Reason | None:
        """Why the agent must not act in the thread; None if it can."""
        if self._held:
            stop = self._stopped(agent, thread_id)
            if stop is not None:
                return Reason.BREAKER_OPEN if stop.scope == BREAKER else Reason.STOPPED
        if self._takeovers and self._takeovers.holder(agent) is not None:
            return Reason.TAKEN_OVER
        return None

    def refuse(self, agent: str, thread_id: str) -> None:
        """Raises `OperationError` if the agent must not act in the thread."""
        stop = self._stopped(agent, thread_id)
        if stop is not None:
            raise refusal(stop)
        holder = self._takeovers.holder(agent) if self._takeovers else None
        if holder is not None:
            raise OperationError(
                ErrorCode.TAKEN_OVER,
                f"{holder} has taken over {agent}; do nothing until it is handed back",
                details={"by": holder},
            )

    def stopper(self, stop: StoredStop) -> Callable[[str, str, str], bool]:
        """A filter for the turns that this stop applies to, by agent, thread and turn."""
        alone = StandingStops([stop])
        return lambda agent, thread_id, turn: alone.of(agent, thread_id) is not None

    def _stopped(self, agent: str, thread_id: str) -> StoredStop | None:
        held = self._held
        stop = held.get(("all", "")) or held.get(("agent", agent))
        up: str | None = thread_id
        # A stopped thread includes all replies under it, or the loop would continue there.
        while stop is None and up is not None:
            stop = held.get(("thread", up)) or held.get((BREAKER, up))
            up = thread_ids.parent(up)
        return stop


def refusal(stop: StoredStop) -> OperationError:
    """The error for an agent that acts despite a stop."""
    what = {"all": "everything", "agent": f"{stop.target}"}.get(stop.scope, "this thread")
    if stop.scope == BREAKER:
        text = f"the breaker stopped this thread: {stop.turns} turns began in a short time"
    else:
        text = f"{stop.by} stopped {what}" + (f": {stop.reason}" if stop.reason else "")
    details: dict[str, object] = {"scope": stop.scope, "target": stop.target, "by": stop.by}
    return OperationError(ErrorCode.STOPPED, text, details=details)


class StandingTakeovers:
    """Takeovers by agent. An expired one has no effect, even before it is removed."""

    def __init__(self, stored: Iterable[StoredTakeover], clock: SteadyClock):
        self._clock = clock
        self._held: dict[str, StoredTakeover] = {}
        self.standing: set[tuple[str, str]] = set()
        """Shared with `StandingStops`; includes expired takeovers."""
        self._ends: dict[str, float] = {}
        """When they end on the steady clock, which can differ from their dates."""
        for takeover in stored:
            self.put(takeover)

    def __bool__(self) -> bool:
        """Whether there are any, expired ones included."""
        return bool(self._held)

    def __iter__(self) -> Iterator[StoredTakeover]:
        """The takeovers that have not expired."""
        return iter([takeover for takeover in self._held.values() if not self._is_over(takeover)])

    def get(self, agent: str) -> StoredTakeover | None:
        """The agent's takeover, unless it expired."""
        takeover = self._held.get(agent)
        return None if takeover is None or self._is_over(takeover) else takeover

    def holder(self, agent: str) -> str | None:
        """The person who took over the agent."""
        takeover = self.get(agent)
        return takeover.by if takeover is not None else None

    def held_by(self, person: str) -> list[str]:
        """The agents that the person took over."""
        return [takeover.agent for takeover in self if takeover.by == person]

    def put(self, takeover: StoredTakeover) -> None:
        """Set a takeover, replacing an earlier one of the agent."""
        self._held[takeover.agent] = takeover
        self.standing.add(("takeover", takeover.agent))
        self._ends[takeover.agent] = self._clock.moment(takeover.until)

    def drop(self, agent: str) -> None:
        """Remove the agent's takeover, expired or not."""
        self._ends.pop(agent, None)
        self.standing.discard(("takeover", agent))
        self._held.pop(agent, None)

    def expired(self) -> list[StoredTakeover]:
        """Takeovers that expired and were not removed yet."""
        return [takeover for takeover in self._held.values() if self._is_over(takeover)]

    def next_end(self) -> float | None:
        """When the next one ends, on the steady clock."""
        return min(self._ends.values(), default=None)

    def _is_over(self, takeover: StoredTakeover) -> bool:
        return self._ends[takeover.agent] <= self._clock.now()
