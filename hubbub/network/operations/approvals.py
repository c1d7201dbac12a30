"""Approvals: an agent asks, people decide, and the agent runs the call, once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import JsonValue

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller, Recording
from hubbub.network.people.verdicts import (
    approval_id,
    arguments_hash,
    as_told,
    may_decide,
    may_see,
)
from hubbub.network.queries import LatestApprovals, TurnById
from hubbub.network.speaking import cause_position
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import (
    Approval,
    Approvals,
    Approve,
    Deny,
    ListApprovals,
    ReadApproval,
    RequestApproval,
    StartApproved,
)
from hubbub.protocol.turns import TurnStart

__all__ = [
    "approve",
    "deny",
    "list_approvals",
    "read_approval",
    "request_approval",
    "start_approved",
]

MOST_TOLD = 512 * 1024
"""Bytes of arguments in one answer of `list_approvals`; a single one may have more."""
MOST_WRONG = 5
"""Mistakes that are told at once."""
MOST_LOOKED = 200
"""Approvals among which those are searched that a person may decide."""


@operation(permission="write", tool=False, idempotent=True, output=Approval)
async def request_approval(call: Caller, args: RequestApproval) -> Approval | Recording:
    """Ask people whether a call of yours may run. Asking again for the same call of a turn tells
    how it stands, and asks nobody twice."""
    hub = call.hub
    start = await _running(call, args.turn)
    id = approval_id(args.turn, args.call)
    before = await hub.approvals.known(id)
    hash = arguments_hash(args.arguments)
    if before is not None:
        _check_same(before, args, hash)
        return as_told(call, before)
    hub.state.turns.check(args.turn)
    now = hub.clock.now()
    asked = Approval(
        id=id,
        agent=call.participant,
        turn=args.turn,
        thread_id=start.thread_id,
        call=args.call,
        tool=args.tool,
        description=args.description,
        arguments=args.arguments,
        hash=hash,
        schema=args.schema_,
        reason=args.reason,
        asked_at=datetime.fromtimestamp(now, UTC),
        expires_at=datetime.fromtimestamp(now + hub.config.approvals.expire, UTC),
        state="pending",
    )
    return hub.approvals.ask(asked)


async def _running(call: Caller, turn: str) -> TurnStart:
    """The start of a turn of the caller's that runs. Raises `OperationError`."""
    _seq, named = cause_position(turn, call.participant)
    stored = await call.hub.store.read(TurnById(turn)) if named is not None else None
    if call.kind != "agent" or stored is None or stored.agent != call.participant:
        text = f"{turn[:100]!r} is no turn of yours that has begun"
        raise OperationError(ErrorCode.UNKNOWN_TURN, text)
    if stored.end is not None:
        raise OperationError(ErrorCode.TURN_OVER, f"turn {turn} has ended")
    return TurnStart.model_validate_json(stored.start)


def _check_same(before: Approval, args: RequestApproval, hash: str) -> None:
    """Raises `OperationError` if another call has that name in the turn."""
    if (before.turn, before.call, before.tool) != (args.turn, args.call, args.tool) or (
        before.hash != hash
    ):
        text = f"call: approval {before.id} was asked for with another tool or other arguments"
        raise OperationError(ErrorCode.BAD_REQUEST, text)


@operation(tool=False)
async def read_approval(call: Caller, args: ReadApproval) -> Approval:
    """Read one approval: the tool, its arguments, who may decide, how it stands."""
    return as_told(call, await call.hub.approvals.visible(call, args.id))


@operation(tool=False)
async def list_approvals(call: Caller, args: ListApprovals) -> Approvals:
    """List approvals, newest first: those that you may decide or have asked for, all for an
    owner."""
    found: list[Approval] = []
    left, room = MOST_TOLD, args.limit
    candidates, more = await _candidates(call, args)
    for approval in candidates:
        if not may_see(call, approval):
            continue
        left -= len(approval.model_dump_json())
        if room == 0 or (found and left < 0):
            more = True
            break
        found.append(as_told(call, approval))
        room -= 1
    return Approvals(approvals=tuple(found), more=more)


async def _candidates(call: Caller, args: ListApprovals) -> tuple[list[Approval], bool]:
    """Approvals newest first, and whether there are more of them than could be looked at."""
    hub = call.hub
    agent = call.participant if call.kind == "agent" else args.agent
    if args.agent is not None and agent != args.agent:
        return [], False
    if args.state == "pending":
        waiting = reversed(hub.approvals.pending())
        return [each for each in waiting if agent in (None, each.agent)], False
    sees_all = call.owner or call.kind == "agent"
    most = args.limit + 1 if sees_all else MOST_LOOKED
    bodies = await hub.store.read(LatestApprovals(agent, most))
    more = not sees_all and len(bodies) == most
    return [Approval.model_validate_json(body) for body in bodies], more


@operation(permission="write", tool=False, output=Approval)
async def approve(call: Caller, args: Approve) -> Recording:
    """Let a tool call run, as it was asked for or with other arguments. For people who may decide
    about it."""
    approvals = call.hub.approvals
    approval = await approvals.visible(call, args.id)
    if args.hash is not None and not approval.hash.startswith(args.hash):
        text = f"hash: approval {approval.id} is for other arguments than those you have looked at"
        raise OperationError(ErrorCode.BAD_REQUEST, text)
    final = approval.arguments if args.arguments is None else args.arguments
    if args.arguments is not None and approval.schema_ is not None and may_decide(call, approval):
        await asyncio.to_thread(_check_arguments, approval.schema_, args.arguments)
        approval = await approvals.visible(call, args.id)
    return approvals.decide(call, approval, "approved", args.reason, final)


@operation(permission="write", tool=False, output=Approval)
async def deny(call: Caller, args: Deny) -> Recording:
    """Refuse a tool call; its agent is told the reason. For people who may decide about it."""
    approval = await call.hub.approvals.visible(call, args.id)
    return call.hub.approvals.decide(call, approval, "denied", args.reason)


@operation(permission="write", tool=False, output=Approval)
async def start_approved(call: Caller, args: StartApproved) -> Recording:
    """Say that an approved call of yours runs now, before it does. An approval can be used once:
    whoever has died in the middle of the call does not run it again."""
    hub = call.hub
    approval = await hub.approvals.visible(call, args.id)
    if call.kind != "agent" or approval.agent != call.participant:
        raise OperationError(ErrorCode.FORBIDDEN, f"only {approval.agent} itself starts its calls")
    await hub.ending.quiet()  # what is just being stopped may be its turn
    approval = await hub.approvals.visible(call, args.id)
    hub.state.turns.check(approval.turn)
    return hub.approvals.start(approval)


def _check_arguments(schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> None:
    """Raises `OperationError` unless the arguments are what the tool's schema wants."""
    # They take long to import, and only who changes arguments needs them.
    from referencing.exceptions import Unresolvable

    from hubbub.protocol.rules import Rules, TooMuchWork

    try:
        found = Rules(schema).mistakes(dict(arguments))
    except (ValueError, TooMuchWork, Unresolvable, RecursionError) as error:
        text = f"arguments: the tool's schema cannot be followed: {error}"
        raise OperationError(ErrorCode.BAD_REQUEST, text) from error
    if found:
        told = [f"{error.json_path}: {error.message[:200]}" for error in found[:MOST_WRONG]]
        raise OperationError(ErrorCode.BAD_REQUEST, f"arguments: {'; '.join(told)}")
