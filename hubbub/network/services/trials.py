"""Trials, for owners: a recorded turn begun once more by its agent's model, and a copy of the
network that goes on from a message, in a process beside the hub. Nothing is written here, and
nothing is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from hubbub.errors import OperationError
from hubbub.ids import new_ulid
from hubbub.mods.operation import bad_request, operation, over_limit
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.service import Service
from hubbub.network.services.turns.turns import TurnService
from hubbub.network.session import Session
from hubbub.network.stored import StoredTurn
from hubbub.protocol.agents import (
    Branch,
    Branched,
    CaseYaml,
    MakeCase,
    Trial,
    TriedTurn,
    TryTurn,
    TurnTried,
)
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Signal
from hubbub.protocol.operations import Done, Input
from hubbub.protocol.turns import TurnStart

__all__ = ["DEADLINE_S", "TrialCommands", "TrialService"]

T = TypeVar("T")

DEADLINE_S = 120.0
"""Seconds in which the agent has to answer."""
MOST_AT_ONCE = 2
"""Trials of one owner under way, and branches of all owners: each costs what models cost."""
OWNERS = "owners"
"""They share the branches that are under way."""


@dataclass(frozen=True, slots=True)
class PendingTrial:
    """A trial that the agent behind `session` has been asked for."""

    session: Session
    answer: asyncio.Future[TurnTried]


class TrialCommands(Protocol):
    """The command line, for this network. Raises `OperationError` with its words."""

    def branch(self, args: Branch) -> Coroutine[Any, Any, Branched]: ...

    def case(self, message: str) -> Coroutine[Any, Any, str]: ...


class LongCalls:
    """Calls that may take longer than a connection may be silent.

    Who waits longer than `patience_s` is refused for now and is to ask again. Who asks again, also
    after its connection was lost, joins what is under way: a call runs on without anybody who
    waits, and its result stays until somebody has had it, or another call begins.
    """

    patience_s = 10.0

    def __init__(self, most: int):
        self._most = most
        self._running: dict[tuple[str, Input], asyncio.Task[Any]] = {}

    async def join(self, who: str, args: Input, run: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of this call of `who`, which `run` begins if it is not under way.

        Raises what `run` raises, and `OperationError` if it takes longer, if `most` of `who` are
        under way, and when the hub stops.
        """
        key = who, args
        task: asyncio.Task[T] | None = self._running.get(key)
        if task is None:
            self._running = {key: each for key, each in self._running.items() if not each.done()}
            if sum(other == who for other, _ in self._running) >= self._most:
                raise over_limit(f"{self._most} of these are under way; wait for one of them")
            task = self._running[key] = asyncio.create_task(run())
            task.add_done_callback(_seen)
        await asyncio.wait({task}, timeout=self.patience_s)
        if not task.done():
            raise OperationError(ErrorCode.NOT_TRIED, "it is under way: ask again", temporary=True)
        self._running = {key: each for key, each in self._running.items() if each is not task}
        if task.cancelled():
            raise OperationError(ErrorCode.DRAINING, "the hub is stopping; come back")
        return task.result()

    def close(self) -> None:
        """End all that is under way."""
        for task in self._running.values():
            task.cancel()


def _seen(task: asyncio.Task[Any]) -> None:
    """A failure that nobody has waited for is no surprise to asyncio."""
    if not task.cancelled():
        task.exception()


class TrialService(Service):
    """Knows the trials that are under way."""

    def __init__(self, kernel: Kernel, turns: TurnService):
        super().__init__(kernel)
        self._turns = turns
        self._waiting: dict[str, PendingTrial] = {}
        self.program: TrialCommands | None = None
        self.calls, self.branching = LongCalls(MOST_AT_ONCE), LongCalls(MOST_AT_ONCE)

    # Reads for the hub: what the owner writes meanwhile does not wait for the models.
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
            raise bad_request("request: nobody waits for this answer of you")
        trial.answer.set_result(args)
        return Done()

    @operation(tool=False)
    async def branch(self, call: Caller, args: Branch) -> Branched:
        """Let a copy of the network go on from a message with other instructions or models, apart
        from it, and compare. Nothing is sent, and no tool that reaches out is run. For owners; the
        store must be a file."""
        program = self._program(call)
        return await self.branching.join(OWNERS, args, lambda: program.branch(args))

    @operation(tool=False)
    async def make_case(self, call: Caller, args: MakeCase) -> CaseYaml:
        """Write what came of a message as a case for `hubbub test`. All of it must be over. For
        owners."""
        program = self._program(call)
        yaml = await self.branching.join(OWNERS, args, lambda: program.case(args.message))
        return CaseYaml(yaml=yaml)

    def _program(self, call: Caller) -> TrialCommands:
        call.require_owner()
        if self.program is None:
            raise _not_tried("only `hubbub up` can do this")
        return self.program

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
        waiting = PendingTrial(session, asyncio.get_running_loop().create_future())
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
        """The hub stops: nobody waits any longer, and processes of branches end."""
        self.calls.close()
        self.branching.close()


def _not_tried(why: str) -> OperationError:
    return OperationError(ErrorCode.NOT_TRIED, why)
