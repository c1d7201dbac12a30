"""Trying a recorded turn with another prompt or model: the agent that ran it asks, the hub hands
question and answer on. Nothing is written, and nothing is sent."""

from __future__ import annotations

import asyncio

from hubbub.errors import OperationError
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.operations.turns import readable_turn
from hubbub.network.session import Session
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Signal
from hubbub.protocol.operations import Done
from hubbub.protocol.trials import (
    ListModels,
    ModelChoice,
    Models,
    Trial,
    TriedTurn,
    TryTurn,
    TurnTried,
)
from hubbub.protocol.turns import TurnStart

__all__ = ["DEADLINE_S", "list_models", "try_turn", "turn_tried"]

DEADLINE_S = 120.0
"""Seconds in which the agent has to answer."""


# A read for the hub: what the owner writes meanwhile does not wait for the model.
@operation(tool=False)
async def try_turn(call: Caller, args: TryTurn) -> TriedTurn:
    """Ask the model of a recorded turn once more how to begin it, with another system prompt or
    another model if you like. Nothing is sent, run or recorded. For owners; the agent must be here.
    """
    call.require_owner()
    stored = await readable_turn(call, args.turn)
    agent, session = stored.agent, _session(call, stored.agent)
    if TurnStart.model_validate_json(stored.start).model is None:
        raise _not_tried(
            f"{agent} has asked no model in this turn, so that none can be asked again"
        )
    if session is None:
        raise _not_tried(f"{agent}, which ran the turn and has the model, is not here")
    with call.hub.trials.open(call.participant, session) as waiting:
        trial = Trial(
            request=waiting.request,
            turn=args.turn,
            system_prompt=args.system_prompt,
            model=args.model,
            within_s=DEADLINE_S,
        )
        signal = Signal(type="try_turn", sender="hub", data=trial.model_dump(mode="json"))
        session.write(signal.model_dump_json(exclude_none=True).encode())
        try:
            async with asyncio.timeout(DEADLINE_S):
                answer = await waiting.answer
        except TimeoutError:
            raise _not_tried(f"{agent} has not answered within {DEADLINE_S:g} s") from None
    if answer.step is None:
        raise _not_tried(answer.error or "")
    return TriedTurn(turn=args.turn, model=answer.model, step=answer.step)


@operation(permission="write", tool=False, idempotent=True)
def turn_tried(call: Caller, args: TurnTried) -> Done:
    """Answer the hub's signal `try_turn`: with what your model says, or why it says nothing."""
    if not call.hub.trials.answered(call.participant, args):
        raise OperationError(ErrorCode.BAD_REQUEST, "request: nobody waits for this answer of you")
    return Done()


@operation(permission="admin", tool=False)
def list_models(call: Caller, args: ListModels) -> Models:
    """List the models of the network's file."""
    known = call.hub.file.models.items()
    return Models(models=tuple(ModelChoice(name=n, model=config.model) for n, config in known))


def _session(call: Caller, agent: str) -> Session | None:
    """That of an agent that records turns; others do not know how to try one."""
    return next((s for s in call.hub.fanout.of(agent) if s.turns), None)


def _not_tried(why: str) -> OperationError:
    return OperationError(ErrorCode.NOT_TRIED, why)
