"""Trying a recorded turn with another prompt or model: the agent that ran it asks, the hub hands
question and answer on. Nothing is written, and nothing is sent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hubbub.errors import OperationError
from hubbub.ids import new_ulid
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.service import LongCalls, Service
from hubbub.network.services.turns.turns import TurnService
from hubbub.network.session import Session
from hubbub.network.stored import StoredTurn
from hubbub.protocol.agents import Trial, TriedTurn, TryTurn, TurnTried
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Signal
from hubbub.protocol.operations import Done
from hubbub.protocol.turns import TurnStart

__all__ = ["DEADLINE_S", "TrialService"]

DEADLINE_S = 120.0
"""Seconds in which the agent has to answer."""
MOST_AT_ONCE = 2
"""Trials of one owner under way: each costs what a model costs."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A trial that the agent behind `session` has been asked for."""

    session: Session
    answer: asyncio.Future[TurnTried]


class TrialService(Service):
    """Knows the trials that are under way. Nothing of them is stored."""

    def __init__(self, kernel: Kernel, turns: TurnService):
        super().__init__(kernel)
        self._turns = turns
        self._waiting: dict[str, Waiting] = {}
        self.calls = LongCalls(MOST_AT_ONCE)

    # A read for the hub: what the owner writes meanwhile does not wait for the model.
    @operation(tool=False)
    async def try_turn(self, call: Caller, args: TryTurn) -> TriedTurn:
        """Ask the model of a recorded turn once more how to begin it, with another system prompt or
        another model if you like. Nothing is sent, run or recorded. For owners; the agent must be
        here."""
        call.require_owner()
        stored = await self._turns.readable_turn(call, args.turn)
        return await self.calls.join(call.participant, args, lambda: self._try(stored, args))

    @operation(permission="write", tool=False, idempotent=True)
    def turn_tried(self, call: Caller, args: TurnTried) -> Done:
        """Answer the hub's signal `try_turn`: with what your model says, or why it says nothing."""
        trial = self._waiting.get(args.request)
        mine = trial is not None and trial.session.participant == call.participant
        if trial is None or not mine or trial.answer.done():
            raise OperationError(
                ErrorCode.BAD_REQUEST, "request: nobody waits for this answer of you"
            )
        trial.answer.set_result(args)
        return Done()

    async def _try(self, stored: StoredTurn, args: TryTurn) -> TriedTurn:
        """What the agent of the turn answers. Raises `OperationError` if it has no answer."""
        agent, request = stored.agent, new_ulid()
        session = next((each for each in self.kernel.fanout.of(agent) if each.turns), None)
        if TurnStart.model_validate_json(stored.start).model is None:
            raise _not_tried(
                f"{agent} has asked no model in this turn, so that none can be asked again"
            )
        if session is None:
            raise _not_tried(f"{agent}, which ran the turn and has the model, is not here")
        trial = Trial(
            request=request,
            turn=args.turn,
            system_prompt=args.system_prompt,
            model=args.model,
            within_s=DEADLINE_S,
        )
        waiting = Waiting(session, asyncio.get_running_loop().create_future())
        self._waiting[request] = waiting
        try:
            signal = Signal(type="try_turn", sender="hub", data=trial.model_dump(mode="json"))
            session.write(signal.encoded())
            async with asyncio.timeout(DEADLINE_S):
                answer = await waiting.answer
        except TimeoutError:
            raise _not_tried(f"{agent} has not answered within {DEADLINE_S:g} s") from None
        finally:
            del self._waiting[request]
        if answer.step is None:
            raise _not_tried(answer.error or "")
        return TriedTurn(turn=args.turn, model=answer.model, step=answer.step)

    def left(self, session: Session) -> None:
        """The agent's session is over: there will be no answer from it."""
        for trial in self._waiting.values():
            if trial.session is session and not trial.answer.done():
                gone = f"{session.participant} went away before it answered"
                trial.answer.set_exception(_not_tried(gone))

    def close(self) -> None:
        """The hub stops: nobody waits any longer."""
        self.calls.close()


def _not_tried(why: str) -> OperationError:
    return OperationError(ErrorCode.NOT_TRIED, why)
