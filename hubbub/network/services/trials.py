"""Trying a recorded turn with another prompt or model: the agent that ran it asks, the hub hands
question and answer on. Nothing is written, and nothing is sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from hubbub.errors import OperationError
from hubbub.ids import new_ulid
from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.service import Service
from hubbub.network.services.turns.turns import TurnService
from hubbub.network.session import Session
from hubbub.protocol.agents import Trial, TriedTurn, TryTurn, TurnTried
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Signal
from hubbub.protocol.operations import Done
from hubbub.protocol.turns import TurnStart

__all__ = ["DEADLINE_S", "TrialService"]

DEADLINE_S = 120.0
"""Seconds in which the agent has to answer."""
MOST_AT_ONCE = 2
"""Trials of one owner under way: each holds one of the calls that a session may read with, and
costs what a model costs."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A trial that the agent behind `session` has been asked for."""

    request: str
    owner: str
    session: Session
    answer: asyncio.Future[TurnTried]


class TrialService(Service):
    """Knows the trials that are under way. Nothing of them is stored."""

    def __init__(self, kernel: Kernel, turns: TurnService):
        super().__init__(kernel)
        self._turns = turns
        self._waiting: dict[str, Waiting] = {}

    # A read for the hub: what the owner writes meanwhile does not wait for the model.
    @operation(tool=False)
    async def try_turn(self, call: Caller, args: TryTurn) -> TriedTurn:
        """Ask the model of a recorded turn once more how to begin it, with another system prompt or
        another model if you like. Nothing is sent, run or recorded. For owners; the agent must be
        here."""
        call.require_owner()
        stored = await self._turns.readable_turn(call, args.turn)
        agent, session = stored.agent, self._session(stored.agent)
        if TurnStart.model_validate_json(stored.start).model is None:
            raise _not_tried(
                f"{agent} has asked no model in this turn, so that none can be asked again"
            )
        if session is None:
            raise _not_tried(f"{agent}, which ran the turn and has the model, is not here")
        with self._open(call.participant, session) as waiting:
            trial = Trial(
                request=waiting.request,
                turn=args.turn,
                system_prompt=args.system_prompt,
                model=args.model,
                within_s=DEADLINE_S,
            )
            signal = Signal(type="try_turn", sender="hub", data=trial.model_dump(mode="json"))
            session.write(signal.encoded())
            try:
                async with asyncio.timeout(DEADLINE_S):
                    answer = await waiting.answer
            except TimeoutError:
                raise _not_tried(f"{agent} has not answered within {DEADLINE_S:g} s") from None
        if answer.step is None:
            raise _not_tried(answer.error or "")
        return TriedTurn(turn=args.turn, model=answer.model, step=answer.step)

    @operation(permission="write", tool=False, idempotent=True)
    def turn_tried(self, call: Caller, args: TurnTried) -> Done:
        """Answer the hub's signal `try_turn`: with what your model says, or why it says nothing."""
        if not self._answered(call.participant, args):
            raise OperationError(
                ErrorCode.BAD_REQUEST, "request: nobody waits for this answer of you"
            )
        return Done()

    def _session(self, agent: str) -> Session | None:
        """That of an agent that records turns; others do not know how to try one."""
        return next((s for s in self.kernel.fanout.of(agent) if s.turns), None)

    # Under way ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _open(self, owner: str, session: Session) -> Iterator[Waiting]:
        """Within, the answer may come. Raises `OperationError` when the owner has enough open."""
        if sum(trial.owner == owner for trial in self._waiting.values()) >= MOST_AT_ONCE:
            text = f"{MOST_AT_ONCE} of your trials are under way; wait for one of them"
            raise OperationError(ErrorCode.LIMIT, text)
        answer: asyncio.Future[TurnTried] = asyncio.get_running_loop().create_future()
        trial = Waiting(new_ulid(), owner, session, answer)
        self._waiting[trial.request] = trial
        try:
            yield trial
        finally:
            del self._waiting[trial.request]

    def _answered(self, agent: str, answer: TurnTried) -> bool:
        """An agent answers. False if nobody waits for that, or not for this agent."""
        trial = self._waiting.get(answer.request)
        if trial is None or trial.session.participant != agent or trial.answer.done():
            return False
        trial.answer.set_result(answer)
        return True

    def left(self, session: Session) -> None:
        """The agent's session is over: there will be no answer from it."""
        gone = f"{session.participant} went away before it answered"
        for trial in self._waiting.values():
            if trial.session is session:
                _fail(trial, OperationError(ErrorCode.NOT_TRIED, gone))

    def close(self) -> None:
        """The hub stops: nobody waits any longer."""
        for trial in self._waiting.values():
            _fail(trial, OperationError(ErrorCode.DRAINING, "the hub is stopping; come back"))


def _not_tried(why: str) -> OperationError:
    return OperationError(ErrorCode.NOT_TRIED, why)


def _fail(trial: Waiting, error: OperationError) -> None:
    if not trial.answer.done():
        trial.answer.set_exception(error)
