"""Trials, for owners: the agent's model begins a recorded turn again, or a copy of the network
continues from a message in a separate process. Nothing is written to the network, and nothing is
sent.
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
"""Seconds that the agent has for its answer."""
MAX_CONCURRENT = 2
"""Concurrent trials per owner, and branches of all owners: each incurs model costs."""
OWNERS = "owners"
"""The common key of branches, which all owners share."""


@dataclass(frozen=True, slots=True)
class PendingTrial:
    """A trial requested from the agent behind `session`."""

    session: Session
    answer: asyncio.Future[TurnTried]


class TrialCommands(Protocol):
    """The command line, for this network. Raises `OperationError` with its error text."""

    def branch(self, args: Branch) -> Coroutine[Any, Any, Branched]: ...

    def case(self, message: str) -> Coroutine[Any, Any, str]: ...


class LongCalls:
    """Calls that can take longer than a connection may be silent.

    A caller that waits longer than `patience_s` gets a temporary error and asks again. Asking
    again, even on a new connection, joins the running call. A call runs on without a caller, and
    its result is held until it is fetched or another call begins.
    """

    patience_s = 10.0

    def __init__(self) -> None:
        self._running: dict[tuple[str, Input], asyncio.Task[Any]] = {}

    async def join(self, who: str, args: Input, run: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of this call of `who`; starts `run` unless the call is already running.

        Raises what `run` raises, and `OperationError` if it takes too long, if `who` has
        `MAX_CONCURRENT` calls running, and when the hub stops.
        """
        key = who, args
        task: asyncio.Task[T] | None = self._running.get(key)
        if task is None:
            self._running = {key: each for key, each in self._running.items() if not each.done()}
            if sum(other == who for other, _ in self._running) >= MAX_CONCURRENT:
                raise over_limit(
                    f"{MAX_CONCURRENT} of these are already running; wait for one of them"
                )
            task = self._running[key] = asyncio.create_task(run())
            task.add_done_callback(_seen)
        await asyncio.wait({task}, timeout=self.patience_s)
        if not task.done():
            raise OperationError(ErrorCode.NOT_TRIED, "still running: ask again", temporary=True)
        self._running = {key: each for key, each in self._running.items() if each is not task}
        if task.cancelled():
            raise OperationError(ErrorCode.DRAINING, "the hub is stopping; reconnect")
        return task.result()

    def close(self) -> None:
        """Cancel all running calls."""
        for task in self._running.values():
            task.cancel()


def _seen(task: asyncio.Task[Any]) -> None:
    """Retrieve a failure, so that asyncio does not warn if no caller is left."""
    if not task.cancelled():
        task.exception()


class TrialService(Service):
    """Runs trials and branches."""

    def __init__(self, kernel: Kernel, turns: TurnService):
        super().__init__(kernel)
        self._turns = turns
        self._waiting: dict[str, PendingTrial] = {}
        self.program: TrialCommands | None = None
        self.calls, self.branching = LongCalls(), LongCalls()

    # A read, so that the owner's writes do not queue behind the model.
    @operation(tool=False)
    async def try_turn(self, call: Caller, args: TryTurn) -> TriedTurn:
        """Ask the model of a recorded turn again for its first step, optionally with another system
        prompt or model. Nothing is sent, run or recorded. For owners; the agent must be
        connected."""
        call.require_owner()
        stored = await self._turns.readable_turn(call, args.turn)
        return await self.calls.join(call.participant, args, lambda: self._try(stored, args))

    @operation(permission="write", tool=False, idempotent=True)
    def turn_tried(self, call: Caller, args: TurnTried) -> Done:
        """Answer the hub's signal `try_turn` with your model's step, or the reason there is
        none."""
        trial = self._waiting.get(args.request)
        mine = trial is not None and trial.session.participant == call.participant
        if trial is None or not mine or trial.answer.done():
            raise bad_request("request: no trial waits for this answer from you")
        trial.answer.set_result(args)
        return Done()

    @operation(tool=False)
    async def branch(self, call: Caller, args: Branch) -> Branched:
        """Continue a separate copy of the network from a message with other instructions or models,
        and compare. Nothing is sent, and no tool with outside effects is run. For owners; the store
        must be a file."""
        program = self._program(call)
        return await self.branching.join(OWNERS, args, lambda: program.branch(args))

    @operation(tool=False)
    async def make_case(self, call: Caller, args: MakeCase) -> CaseYaml:
        """Write a message and its outcome as a case for `hubbub test`. Its interaction must have
        ended. For owners."""
        program = self._program(call)
        yaml = await self.branching.join(OWNERS, args, lambda: program.case(args.message))
        return CaseYaml(yaml=yaml)

    def _program(self, call: Caller) -> TrialCommands:
        call.require_owner()
        if self.program is None:
            raise _not_tried("only `hubbub up` can do this")
        return self.program

    async def _try(self, stored: StoredTurn, args: TryTurn) -> TriedTurn:
        """The agent's answer to the trial. Raises `OperationError` if there is none."""
        agent, request = stored.agent, new_ulid()
        session = next((each for each in self.kernel.fanout.of(agent) if each.turns), None)
        if TurnStart.model_validate_json(stored.start).model is None:
            raise _not_tried(
                f"{agent} did not ask a model in this turn, so there is none to ask again"
            )
        if session is None:
            raise _not_tried(f"{agent}, which ran the turn and has the model, is not connected")
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
            raise _not_tried(f"{agent} did not answer within {DEADLINE_S:g} s") from None
        finally:
            del self._waiting[request]
        if answer.step is None:
            raise _not_tried(answer.error or "")
        return TriedTurn(turn=args.turn, model=answer.model, step=answer.step)

    def left(self, session: Session) -> None:
        """Fail the trials of a session that ended."""
        for trial in self._waiting.values():
            if trial.session is session and not trial.answer.done():
                text = f"{session.participant} disconnected before it answered"
                trial.answer.set_exception(_not_tried(text))

    def close(self) -> None:
        """The hub stops: cancel the trials and end the processes of branches."""
        self.calls.close()
        self.branching.close()


def _not_tried(why: str) -> OperationError:
    return OperationError(ErrorCode.NOT_TRIED, why)
