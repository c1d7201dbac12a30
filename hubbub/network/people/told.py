"""What is stopped and who speaks for whom, as a person is told it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from pydantic import JsonValue

from hubbub.network.caller import Caller
from hubbub.network.people.halts import BREAKER
from hubbub.network.stored import StoredHalt, StoredTakeover
from hubbub.protocol.control import BreakerState, Stopped, StopScope, Takeover

__all__ = ["as_stopped", "as_takeover", "latched", "stops", "stops_data", "takeovers"]


def stops(call: Caller) -> tuple[Stopped, ...]:
    """The stops that hold: all for an owner, else those of agents and of threads that it reads."""
    halts = (halt for halt in call.hub.state.halts if halt.scope != BREAKER)
    return tuple(as_stopped(halt) for halt in halts if _concerns(call, halt))


def latched(call: Caller) -> tuple[BreakerState, ...]:
    """The threads that the breaker has latched, in the same way."""
    within_s = call.hub.config.breaker.within
    halts = (halt for halt in call.hub.state.halts if halt.scope == BREAKER)
    return tuple(
        BreakerState(thread_id=halt.target, at=_time(halt.at), turns=halt.turns, within_s=within_s)
        for halt in halts
        if _concerns(call, halt)
    )


def _concerns(call: Caller, halt: StoredHalt) -> bool:
    if call.owner or halt.scope not in ("thread", BREAKER):
        return True
    thread = call.hub.state.threads.get(halt.target)
    return thread is not None and call.may_look(thread)


def takeovers(call: Caller) -> tuple[Takeover, ...]:
    """The agents that somebody speaks for."""
    return tuple(map(as_takeover, call.hub.state.takeovers))


def stops_data(call: Caller) -> dict[str, JsonValue]:
    """The data of a `stops` signal."""
    return {
        "stops": [stop.model_dump(mode="json", exclude_none=True) for stop in stops(call)],
        "latched": [state.model_dump(mode="json") for state in latched(call)],
    }


def as_stopped(halt: StoredHalt, turns: int = 0, wakes: int = 0) -> Stopped:
    """`turns` and `wakes`: what the stop has ended."""
    return Stopped(
        scope=cast(StopScope, halt.scope),
        target=halt.target or None,
        by=halt.by,
        reason=halt.reason,
        at=_time(halt.at),
        turns=turns,
        wakes=wakes,
    )


def as_takeover(lease: StoredTakeover) -> Takeover:
    return Takeover(agent=lease.agent, by=lease.by, until=_time(lease.until))


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
