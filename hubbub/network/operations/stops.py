"""Stopping what agents do, and letting them go on. For people; no model may call any of it."""

from __future__ import annotations

from hubbub.errors import OperationError
from hubbub.ids import parse_message_id
from hubbub.mods.operation import operation
from hubbub.network.caller import OPERATOR, Caller
from hubbub.network.operations.threads import find_thread
from hubbub.network.people import told
from hubbub.network.people.ending import Why
from hubbub.network.people.halts import BREAKER
from hubbub.network.people.running import Ended
from hubbub.network.queries import WakeOf
from hubbub.network.records import HaltLifted, HaltSet
from hubbub.network.stored import StoredHalt
from hubbub.network.threads import Thread
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import (
    Breakers,
    ListBreakers,
    ListStops,
    ReleaseBreaker,
    Resume,
    Stop,
    Stopped,
    Stops,
)
from hubbub.protocol.operations import Done

__all__ = ["list_breakers", "list_stops", "release_breaker", "resume", "stop"]

COST = 0.1
"""Of the rate limit: whoever is in a hurry to stop something is not to be kept waiting."""


@operation(permission="write", tool=False, idempotent=True, cost=COST)
async def stop(call: Caller, args: Stop) -> Stopped:
    """Stop a turn, a thread, an agent, or everything: running turns end at once, wakes that wait
    are dropped, and until it is resumed nothing there wakes anybody. A turn and a thread may be
    stopped by whoever reads the thread, the rest by owners."""
    _check_person(call)
    match args.scope:
        case "turn":
            return await _stop_turn(call, _target(args), args.reason)
        case "thread":
            thread = _readable(call, _target(args))
            return await _halt(call, "thread", thread.id, args.reason)
        case "agent":
            call.require_owner()
            return await _halt(call, "agent", _agent(call, _target(args)), args.reason)
        case "all":
            call.require_owner()
            return await _halt(call, "all", "", args.reason)


@operation(permission="admin", tool=False, idempotent=True)
async def resume(call: Caller, args: Resume) -> Done:
    """Let a thread, an agent or everything go on. What was stopped stays ended; what is said from
    now on wakes again."""
    _check_person(call)
    match args.scope:
        case "thread":
            target = _any_thread(call, _target(args)).id
        case "agent":
            target = _agent(call, _target(args))
        case "all":
            target = ""
    await _lift(call, args.scope, target)
    return Done()


@operation(tool=False)
async def list_stops(call: Caller, args: ListStops) -> Stops:
    """List what people have stopped."""
    return Stops(stops=told.stops(call))


@operation(tool=False)
async def list_breakers(call: Caller, args: ListBreakers) -> Breakers:
    """List the threads that the breaker has latched because too many turns began there."""
    return Breakers(latched=told.latched(call))


@operation(permission="admin", tool=False, idempotent=True)
async def release_breaker(call: Caller, args: ReleaseBreaker) -> Done:
    """Release a thread that the breaker has latched: what is said there wakes again."""
    _check_person(call)
    thread = _any_thread(call, args.thread)
    await _lift(call, BREAKER, thread.id)
    call.hub.latching.forget(thread.id)
    return Done()


# Stopping -----------------------------------------------------------------------------------


async def _halt(call: Caller, scope: str, target: str, reason: str) -> Stopped:
    """Stop an agent, a thread or everything. Raises `StoreUnavailable`: then nothing is stopped."""
    hub, halts = call.hub, call.hub.state.halts
    async with hub.ending.alone():
        before = halts.get(scope, target)
        halt = StoredHalt(scope, target, call.participant, reason, hub.clock.now(), 0)
        halts.put(halt)  # from here on nothing begins there
        why = Why.of(halt, again=before is not None)
        try:
            agents = _agents(call, scope, target)
            ended = await hub.ending.end(agents, halts.stopper(halt), why, [HaltSet(*halt)])
        except BaseException:  # whatever it was: nothing has ended, so nothing is stopped
            if before is None:
                halts.lift(scope, target)
            else:
                halts.put(before)
            raise
    hub.news.stops_changed()
    return told.as_stopped(halt, *ended)


def _agents(call: Caller, scope: str, target: str) -> tuple[str, ...]:
    """Those of whose turns and wakes some may be in the scope."""
    state = call.hub.state
    if scope == "agent":
        return (target,)
    members = thread_ids.members_of(target) if scope == "thread" else ()
    # Of a channel all are asked: who has left it may have a turn there still.
    return tuple(state.agents.intersection(members) if members else state.agents)


async def _stop_turn(call: Caller, target: str, reason: str) -> Stopped:
    """End one turn, or drop the wakes of one that has not begun."""
    hub, now = call.hub, call.hub.clock.now()
    agent, thread_id, turn = await _find_turn(call, target)
    halt = StoredHalt("turn", turn, call.participant, reason, now, 0)
    why = Why.turn(turn, agent, call.participant, reason, now, thread_id)
    async with hub.ending.alone():
        if hub.state.turns.why_over(turn) is not None:
            return told.as_stopped(halt)
        hub.state.turns.end(Ended(turn, agent, why.code, why.by, why.told))  # it says no more
        try:
            ended = await hub.ending.end([agent], lambda a, t, each: each == turn, why)
        except BaseException:
            hub.state.turns.spare([turn])
            raise
        if not any(ended):
            hub.state.turns.spare([turn])  # it had ended by itself
    return told.as_stopped(halt, *ended)


async def _find_turn(call: Caller, target: str) -> tuple[str, str, str]:
    """Agent, thread and id of the turn that the caller means, if it reads the thread.

    Of a turn that was taken up into another one, it is the other.
    """
    hub, (agent, _, message) = call.hub, target.rpartition("-")
    seq = parse_message_id(message)
    woken_by = await hub.writes.causes.ancestor(seq) if seq else None
    if seq is not None and woken_by is not None and agent in hub.state.agents:
        thread = hub.state.threads.by_no(woken_by.thread_no)
        if _may_stop(call, thread):
            wake = await hub.store.read(WakeOf(agent, seq))
            taken = wake.taken if wake is not None else None
            return agent, thread.id, taken or target
    raise OperationError(ErrorCode.UNKNOWN_TURN, f"there is no turn {target[:100]!r} for you")


# Going on -----------------------------------------------------------------------------------


async def _lift(call: Caller, scope: str, target: str) -> None:
    """Lift a halt, if there is one. Raises `StoreUnavailable`: then it holds."""
    hub, halts = call.hub, call.hub.state.halts
    async with hub.ending.alone():
        if halts.get(scope, target) is None:
            return
        await hub.writes.write(lambda head: [HaltLifted(scope, target)])
        halts.lift(scope, target)
    hub.news.stops_changed()


# Who and what -------------------------------------------------------------------------------


def _check_person(call: Caller) -> None:
    if call.kind != "human" and call.participant != OPERATOR:
        raise OperationError(ErrorCode.FORBIDDEN, "only people stop and resume what agents do")


def _target(args: Stop | Resume) -> str:
    if args.target is None:
        raise OperationError(
            ErrorCode.BAD_REQUEST, f"target: which {args.scope}? Only `all` needs none"
        )
    return args.target


def _agent(call: Caller, name: str) -> str:
    if name not in call.hub.state.agents:
        raise OperationError(
            ErrorCode.UNKNOWN_PARTICIPANT, f"target: there is no agent {name[:64]!r}"
        )
    return name


def _may_stop(call: Caller, thread: Thread) -> bool:
    return call.owner or call.may_look(thread)


def _readable(call: Caller, name: str) -> Thread:
    """The thread, if the caller may stop it. Raises `OperationError`."""
    return _any_thread(call, name) if call.owner else find_thread(call, name, look=True)


def _any_thread(call: Caller, name: str) -> Thread:
    """The thread, also one that an owner may not read: it may stop and release it unseen."""
    canonical = thread_ids.canonical(name, call.participant)
    thread = call.hub.state.threads.get(canonical) if canonical is not None else None
    return thread if thread is not None else find_thread(call, name, look=True)
