"""Stops: people stop and resume agents' work; the breaker stops a thread automatically."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import cast

from pydantic import JsonValue

from hubbub.config.budgets import BreakerConfig
from hubbub.errors import OperationError, StoreUnavailable
from hubbub.ids import parse_message_id
from hubbub.logs import get_logger
from hubbub.mods.fields import time_of
from hubbub.mods.operation import bad_request, forbidden, operation
from hubbub.network.caller import OPERATOR, Caller
from hubbub.network.kernel import Kernel
from hubbub.network.queries import WakeOf
from hubbub.network.records import StopLifted
from hubbub.network.routing import unknown_turn
from hubbub.network.running_turns import EndedTurn
from hubbub.network.service import Service
from hubbub.network.services.threads import find_thread
from hubbub.network.services.turns.ending import Ending
from hubbub.network.services.turns.notices import EndReason
from hubbub.network.session import Session
from hubbub.network.standing_stops import BREAKER, refusal
from hubbub.network.stored import StoredStop
from hubbub.network.threads import Thread
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import (
    Breakers,
    BreakerState,
    ListBreakers,
    ListStops,
    ReleaseBreaker,
    Resume,
    Stop,
    Stopped,
    Stops,
    StopScope,
)
from hubbub.protocol.frames import Signal
from hubbub.protocol.operations import Done

__all__ = ["Breaker", "StopService"]

log = get_logger(__name__)

COST = 0.1
"""Cost against the rate limit, low so that an urgent stop is never held up."""


class StopService(Service):
    """Stops and resumes on behalf of people, and counts turns for the breaker. No model can call
    any of it."""

    def __init__(self, kernel: Kernel, ending: Ending):
        super().__init__(kernel)
        self._ending, self._standing = ending, kernel.state.stops
        self._breaker = Breaker(kernel.config.breaker)

    # Operations ---------------------------------------------------------------------------

    @operation(permission="write", tool=False, idempotent=True, cost=COST)
    async def stop(self, call: Caller, args: Stop) -> Stopped:
        """Stop a turn, a thread, an agent, or everything: running turns end at once, pending wakes
        are dropped, and no agent wakes there until it is resumed. Anyone who reads a thread can
        stop it and its turns; only owners can stop the rest."""
        _check_person(call)
        match args.scope:
            case "turn":
                return await self._stop_turn(call, _target(args), args.reason)
            case "thread":
                thread = self._stoppable(call, _target(args))
                return await self._stop(call, "thread", thread.id, args.reason)
            case "agent":
                call.require_owner()
                return await self._stop(call, "agent", self._agent(_target(args)), args.reason)
            case "all":
                call.require_owner()
                return await self._stop(call, "all", "", args.reason)

    @operation(permission="admin", tool=False, idempotent=True)
    async def resume(self, call: Caller, args: Resume) -> Done:
        """Resume a thread, an agent or everything. The turns that were stopped stay ended; new
        messages wake agents again."""
        _check_person(call)
        match args.scope:
            case "thread":
                target = self._any_thread(call, _target(args)).id
            case "agent":
                target = self._agent(_target(args))
            case "all":
                target = ""
        await self._lift(args.scope, target)
        return Done()

    @operation(tool=False)
    async def list_stops(self, call: Caller, args: ListStops) -> Stops:
        """List the stops that people set."""
        return Stops(stops=self._stops(call))

    @operation(tool=False)
    async def list_breakers(self, call: Caller, args: ListBreakers) -> Breakers:
        """List the threads that the breaker stopped because too many turns began there."""
        return Breakers(breakers=self._breakers(call))

    @operation(permission="admin", tool=False, idempotent=True)
    async def release_breaker(self, call: Caller, args: ReleaseBreaker) -> Done:
        """Release a thread that the breaker stopped: new messages wake agents there again."""
        _check_person(call)
        thread = self._any_thread(call, args.thread)
        await self._lift(BREAKER, thread.id)
        self._breaker.forget(thread.id)
        return Done()

    # Stopping -----------------------------------------------------------------------------

    async def _stop(self, call: Caller, scope: str, target: str, reason: str) -> Stopped:
        """Stop an agent, a thread or everything. On `StoreUnavailable` nothing is stopped."""
        standing = self._standing
        async with self._ending.exclusive():
            before = standing.get(scope, target)
            now = self.kernel.clock.now()
            stop = StoredStop(scope, target, call.participant, reason, now, 0)
            standing.put(stop)  # from here on no turn begins there
            why = EndReason.of(stop, again=before is not None)
            try:
                agents = self._agents_in(scope, target)
                ended = await self._ending.end(agents, standing.stopper(stop), why, [stop])
            except BaseException:  # nothing has ended, so nothing is stopped
                if before is None:
                    standing.lift(scope, target)
                else:
                    standing.put(before)
                raise
        self._changed()
        return _described(stop, *ended)

    def _agents_in(self, scope: str, target: str) -> tuple[str, ...]:
        """The agents that can have turns or wakes in the scope."""
        agents = self.state.agents
        if scope == "agent":
            return (target,)
        members = thread_ids.members_of(target) if scope == "thread" else ()
        # For a channel all agents: one that left can still have a turn there.
        return tuple(agents.intersection(members) if members else agents)

    async def _stop_turn(self, call: Caller, target: str, reason: str) -> Stopped:
        """End one turn, or drop the wakes of one that has not begun."""
        now, turns = self.kernel.clock.now(), self.state.turns
        agent, thread_id, turn = await self._find_turn(call, target)
        stop = StoredStop("turn", turn, call.participant, reason, now, 0)
        why = EndReason.turn(turn, agent, call.participant, reason, now, thread_id)
        async with self._ending.exclusive():
            if turns.hub_end(turn) is not None:
                return _described(stop)
            turns.end(
                EndedTurn(turn, agent, why.code, why.by, why.record_reason)
            )  # it sends no more
            try:
                ended = await self._ending.end([agent], lambda a, t, each: each == turn, why)
            except BaseException:
                turns.spare([turn])
                raise
            if not any(ended):
                turns.spare([turn])  # it had already ended by itself
                self._ending.notify([EndedTurn(target, agent, why.code, why.by, why.record_reason)])
        return _described(stop, *ended)

    async def _find_turn(self, call: Caller, target: str) -> tuple[str, str, str]:
        """The agent, thread and id of a turn in a thread that the caller reads.

        If another turn took over the wake, it is that turn.
        """
        agent, _, message = target.rpartition("-")
        seq = parse_message_id(message)
        woken_by = await self.kernel.writes.causes.ancestor(seq) if seq else None
        if seq is not None and woken_by is not None and agent in self.state.agents:
            thread = self.state.threads.by_no(woken_by.thread_no)
            if call.owner or call.may_look(thread):
                wake = await self.store.read(WakeOf(agent, seq))
                taken = wake.taken if wake is not None else None
                return agent, thread.id, taken or target
        raise unknown_turn(target)

    async def _lift(self, scope: str, target: str) -> None:
        """Lift a stop, if there is one. On `StoreUnavailable` it stands."""
        async with self._ending.exclusive():
            if self._standing.get(scope, target) is None:
                return
            await self.kernel.log.write(StopLifted(scope, target))
            self._standing.lift(scope, target)
        self._changed()

    # The breaker --------------------------------------------------------------------------

    def count(self, thread_id: str, turn: str) -> None:
        """Count a turn that is about to begin. If it exceeds the thread's limit, stops the thread
        and raises `OperationError`."""
        clock = self.kernel.clock
        turns = self._breaker.count(thread_id, turn, clock.monotonic())
        if turns is None:
            return
        stop = StoredStop(BREAKER, thread_id, "hub", "", clock.now(), turns)
        self._standing.put(stop)
        self.kernel.spawn(self._open(stop))
        raise refusal(stop)

    async def _open(self, stop: StoredStop) -> None:
        why = EndReason.of(stop, within_s=self.kernel.config.breaker.within)
        within, agents = self._standing.stopper(stop), tuple(self.state.agents)
        try:
            async with self._ending.exclusive():
                await self._ending.end(agents, within, why, [stop])
        except StoreUnavailable:
            self._standing.lift(stop.scope, stop.target)
            log.warning("the breaker could not stop a thread", thread=stop.target)
        else:
            self._changed()

    # Signals to people --------------------------------------------------------------------

    def joined(self, session: Session) -> None:
        if session.is_person and any(self._standing):
            self._signal(session)

    def _changed(self) -> None:
        for session in self.kernel.fanout.sessions_of_people():
            self._signal(session)

    def _signal(self, session: Session) -> None:
        if session.caller is None:
            return
        stops, breakers = self._stops(session.caller), self._breakers(session.caller)
        data: dict[str, JsonValue] = {
            "stops": [stop.model_dump(mode="json", exclude_none=True) for stop in stops],
            "breakers": [state.model_dump(mode="json") for state in breakers],
        }
        signal = Signal(type="stops", sender="hub", data=data)
        session.write(signal.encoded())

    def _stops(self, call: Caller) -> tuple[Stopped, ...]:
        """The standing stops: all for an owner, otherwise those of agents and of threads that the
        caller reads."""
        stops = (stop for stop in self._standing if stop.scope != BREAKER)
        return tuple(_described(stop) for stop in stops if _concerns(call, stop))

    def _breakers(self, call: Caller) -> tuple[BreakerState, ...]:
        """The threads that the breaker stopped, with the same visibility."""
        within_s = self.kernel.config.breaker.within
        return tuple(
            BreakerState(
                thread_id=stop.target, at=time_of(stop.at), turns=stop.turns, within_s=within_s
            )
            for stop in self._standing
            if stop.scope == BREAKER and _concerns(call, stop)
        )

    # Targets ------------------------------------------------------------------------------

    def _agent(self, name: str) -> str:
        if name not in self.state.agents:
            raise OperationError(
                ErrorCode.UNKNOWN_PARTICIPANT, f"target: no agent is named {name[:64]!r}"
            )
        return name

    def _stoppable(self, call: Caller, name: str) -> Thread:
        """The thread. Raises `OperationError` unless the caller can stop it."""
        return self._any_thread(call, name) if call.owner else find_thread(call, name, look=True)

    def _any_thread(self, call: Caller, name: str) -> Thread:
        """The thread, even one that an owner cannot read but can stop and release."""
        canonical = thread_ids.canonical(name, call.participant)
        thread = self.state.threads.get(canonical) if canonical is not None else None
        return thread if thread is not None else find_thread(call, name, look=True)


def _check_person(call: Caller) -> None:
    if call.kind != "human" and call.participant != OPERATOR:
        raise forbidden("only people can stop and resume agents' work")


def _target(args: Stop | Resume) -> str:
    if args.target is None:
        raise bad_request(f"target: name the {args.scope}; only scope `all` has no target")
    return args.target


def _concerns(call: Caller, stop: StoredStop) -> bool:
    if call.owner or stop.scope not in ("thread", BREAKER):
        return True
    thread = call.state.threads.get(stop.target)
    return thread is not None and call.may_look(thread)


def _described(stop: StoredStop, turns: int = 0, wakes: int = 0) -> Stopped:
    """`turns` and `wakes`: how many the stop ended."""
    return Stopped(
        scope=cast(StopScope, stop.scope),
        target=stop.target or None,
        by=stop.by,
        reason=stop.reason,
        at=time_of(stop.at),
        turns=turns,
        wakes=wakes,
    )


MAX_THREADS = 10_000
"""Threads counted at a time; the one whose last turn is oldest is dropped first."""


class Breaker:
    """Counts turns per thread in a sliding window."""

    def __init__(self, config: BreakerConfig):
        self._config = config
        self._begun: OrderedDict[str, deque[tuple[float, str]]] = OrderedDict()

    def count(self, thread_id: str, turn: str, now: float) -> int | None:
        """Count a turn that is about to begin; returns the count if it exceeds the limit.

        A turn counts once, however often it begins, and no longer after exactly `within` seconds.
        """
        if not self._config.enabled:
            return None
        begun = self._begun.setdefault(thread_id, deque(maxlen=self._config.turns + 1))
        self._begun.move_to_end(thread_id)
        if len(self._begun) > MAX_THREADS:
            self._begun.popitem(last=False)
        while begun and begun[0][0] <= now - self._config.within:
            begun.popleft()
        if all(turn != counted for _, counted in begun):
            begun.append((now, turn))
        return len(begun) if len(begun) > self._config.turns else None

    def forget(self, thread_id: str) -> None:
        """Reset the count of a released thread."""
        self._begun.pop(thread_id, None)
