"""What is stopped: agents, threads or everything by people, threads also by the breaker; and which
agents a person speaks for. Pure memory; what is durable about it is in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hubbub.errors import OperationError
from hubbub.network.stored import StoredStop
from hubbub.network.takeovers import Takeovers
from hubbub.network.wakes import Reason
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode

__all__ = ["BREAKER", "StandingStops", "refusal"]

BREAKER = "breaker"
"""The scope of what the breaker stops."""


class StandingStops:
    """Asked for every wake: nearly always nothing is stopped, and that costs two looks."""

    def __init__(self, stored: Iterable[StoredStop], takeovers: Takeovers | None = None):
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

    def lift(self, scope: str, target: str) -> StoredStop | None:
        """Forget a stop and give it back; None if there was none."""
        self.standing.discard((scope, target))
        return self._held.pop((scope, target), None)

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
