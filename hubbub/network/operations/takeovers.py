"""Speaking for an agent. For people; no model may call any of it."""

from __future__ import annotations

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.people import told
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import HandBack, ListTakeovers, TakeOver, Takeover, Takeovers
from hubbub.protocol.operations import Done

__all__ = ["hand_back", "list_takeovers", "take_over"]


@operation(permission="admin", tool=False, idempotent=True)
async def take_over(call: Caller, args: TakeOver) -> Takeover:
    """Speak for an agent for a while: what it was doing ends, nothing wakes it, and what reaches it
    you hear. What you say with `speak_as` is marked so. Taking over again renews the lease."""
    if call.kind != "human":
        raise OperationError(ErrorCode.FORBIDDEN, "only a person may speak for an agent")
    if args.agent not in call.hub.state.agents:
        raise OperationError(
            ErrorCode.UNKNOWN_PARTICIPANT, f"agent: there is no agent {args.agent!r}"
        )
    until = call.hub.clock.now() + 60 * args.minutes
    return told.as_takeover(await call.hub.speaking_for.take(args.agent, call.participant, until))


@operation(permission="write", tool=False, idempotent=True)
async def hand_back(call: Caller, args: HandBack) -> Done:
    """Let an agent that was taken over speak for itself again. What was said meanwhile is in its
    next prompt. For whoever speaks for it, and for owners."""
    holder = call.hub.state.takeovers.holder(args.agent)
    if call.participant != holder:
        call.require_owner()
    if holder is not None:
        await call.hub.speaking_for.give_back(args.agent)
    return Done()


@operation(tool=False)
async def list_takeovers(call: Caller, args: ListTakeovers) -> Takeovers:
    """List the agents for which somebody speaks, and until when."""
    return Takeovers(takeovers=told.takeovers(call))
