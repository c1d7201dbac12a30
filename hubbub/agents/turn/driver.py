"""Carries out the commands of a turn's state machine: one driver for agents, roles and helpers.

machine (`Loop`, `Pipeline`) -> commands -> record a step, ask a model, run calls -> machine -> ...
until it ends or is parked
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hubbub.agents.inbox import Inbox, SteerMode, TurnPlan, WakingMessage, steer_mode
from hubbub.agents.models.base import Completion, OnDelta
from hubbub.agents.prompt.render import element
from hubbub.agents.tools.toolbox import CallWrapper, Toolbox
from hubbub.agents.turn.activity import TurnActivity
from hubbub.agents.turn.continuation import awaits_answer
from hubbub.agents.turn.hooks import HookChain
from hubbub.agents.turn.loop import (
    FINISH,
    CallResult,
    Command,
    End,
    Park,
    QueryModel,
    Record,
    RunTools,
    TimedCompletion,
)
from hubbub.agents.turn.partial import Partials
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.agents.turn.reservations import outcome_of
from hubbub.errors import ConnectionLost, ModelError
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Steering, Step

__all__ = [
    "Driver",
    "SteeringQueue",
    "StepCalls",
    "TrustState",
    "TurnDriver",
    "TurnMachine",
    "as_steering",
    "untrusted_ids",
]

# Steering: a person's message during a turn waits in the inbox (`Inbox.steering`) and is shown to
# the model with the turn's next query, unless its sender or the agent's config sets another mode
# (`steer_mode`). It belongs to the turn once the answer is recorded. If the turn stops before that,
# the message starts a turn of its own.


_STEERING_NOTE = (
    "This has come in while you were at work. Take it into account in what you do next; what you "
    "have done is done."
)


class SteeringQueue:
    """Messages by which people steer one turn; `steer` is the default mode."""

    def __init__(self, inbox: Inbox, thread_id: str, steer: SteerMode):
        self._inbox, self._thread_id, self._steer = inbox, thread_id, steer

    def waiting(self) -> tuple[WakingMessage, ...]:
        """The messages to show with the next query."""
        return tuple(self._inbox.steering(self._thread_id, self._accepts))

    def _accepts(self, message: Message) -> bool:
        return steer_mode(message, self._steer) == "steer"

    def accept(self, woken: Sequence[WakingMessage]) -> None:
        """Assign these messages to the turn: an answer to them is about to be recorded."""
        self._inbox.accept_steering(self._thread_id, woken)


def as_steering(woken: Sequence[WakingMessage]) -> tuple[Steering, ...]:
    """The messages as the model sees them: formatted like incoming ones in the first prompt."""
    last = len(woken) - 1
    return tuple(
        Steering(
            message=w.message.id,
            reply=w.wake.reply,
            text=element(w.message, "incoming_message").text
            + (f"\n\n{_STEERING_NOTE}" if n == last else ""),
        )
        for n, w in enumerate(woken)
    )


class TurnMachine(Protocol):
    """Decides the next command, only from the recorded steps: `Loop` or `RolePipeline`."""

    steps: list[Step]

    def start(self) -> list[Command]: ...
    def answered(self, answers: Sequence[TimedCompletion]) -> list[Command]: ...
    def ran(self, results: Sequence[CallResult], notes: tuple[str, ...] = ()) -> list[Command]: ...


Ask = Callable[[QueryModel, OnDelta | None], Awaitable[Completion]]
"""Queries the model that the command names. Raises `ModelError`."""


class TrustState:
    """Whether a turn, or a helper in it, has read untrusted content, that is, content from outside
    the network. Once true, it stays true. Such content comes from messages marked as untrusted,
    files, and the agent's own functions and MCP servers unless the operator trusts them.
    """

    def __init__(self, untrusted: bool = False, steps: Iterable[Step] = ()):
        """`untrusted`: it started with untrusted content. `steps` are those of an earlier process
        and of turns that this one continues.
        """
        self.untrusted = untrusted or any(step.untrusted for step in steps)

    def read(self, names: Iterable[str]) -> tuple[str, ...]:
        """Note untrusted content. Returns the names of its sources if it is the first."""
        fresh = tuple(dict.fromkeys(names))
        if self.untrusted or not fresh:
            return ()
        self.untrusted = True
        return fresh


def untrusted_ids(messages: Iterable[Message]) -> list[str]:
    """The ids of the messages that carry untrusted content."""
    return [message.id for message in messages if message.untrusted]


def _request_of(plan: TurnPlan) -> str:
    """The request (m42) that the turn works on; empty without one, and with several."""
    messages = (*plan.incoming, *filter(None, (plan.original_request,)))
    requests = {message.task for message in messages if message.task is not None}
    return requests.pop() if len(requests) == 1 else ""


@dataclass(frozen=True, slots=True)
class StepCalls:
    """Runs the calls of a turn's steps. Calls that must not run twice are recorded first.

    `around` wraps each call.
    """

    toolbox: Toolbox
    recorder: TurnRecorder
    around: CallWrapper | None = None
    trust: TrustState = field(default_factory=TrustState)
    """The state of the turn or helper that makes the calls."""

    async def run(self, run: RunTools, base: int = 0) -> list[CallResult]:
        """The results, in the order of the calls. `base` is added to the step's number."""
        untrusted = self.trust.untrusted  # before the calls, whose results may be untrusted
        if self.around is not None or not self.toolbox.only_calls_hub(run.calls):
            await self.recorder.flush_start()  # a call may crash the process
        if self.toolbox.must_be_recorded(run.calls):
            await self.recorder.flush()
        plan, step = self.recorder.plan, run.step
        return await self.toolbox.run(
            plan.id,
            step.n + base,
            step.calls,
            run.calls,
            again=run.again,
            clock=self.recorder.clock,
            thread_id=plan.reply_thread,
            request=_request_of(plan),
            wait=step.wait if any(call.name != FINISH for call in run.calls) else "all",
            around=self.around,
            untrusted=untrusted,
        )


@dataclass(slots=True)
class Driver:
    """Drives a helper; `TurnDriver` drives a whole turn."""

    machine: TurnMachine
    calls: StepCalls
    ask: Ask
    base: int = 0
    """Added to step numbers in the turn's record."""
    join: Callable[[], list[Command]] = list
    """Called before a query: commands for helpers that have ended; without any, the query runs."""
    before_stop: Callable[[End | Park], Awaitable[None]] | None = None
    """Awaited before it stops: cancels background helpers or waits for them."""
    _untrusted: dict[int, tuple[str, ...]] = field(default_factory=dict, init=False)

    async def drive(self) -> End | Park:
        """Run from the end of the record until the turn ends or is parked."""
        todo = deque(self.machine.start())
        while True:
            match todo.popleft():
                case Record(step):
                    await self._record(step)
                case QueryModel() as query:
                    others = [command for command in todo if isinstance(command, QueryModel)]
                    todo = deque(self.join() or await self._ask([query, *others]))
                case RunTools() as run:
                    todo.extend(await self._run_tools(run))
                case End() | Park() as stop:
                    await self._before_stop(stop)
                    return stop

    async def _before_stop(self, stop: End | Park) -> None:
        if self.before_stop is not None:
            await self.before_stop(stop)

    async def _record(self, step: Step) -> None:
        untrusted = (*step.untrusted, *self._untrusted.get(step.n, ()))
        if untrusted or self.base:
            update = {"n": step.n + self.base, "untrusted": untrusted}
            step = step.model_copy(update=update)
        self.calls.recorder.step(step)
        if step.steered:  # its messages must not wake the agent again
            await self.calls.recorder.flush()

    async def _ask(self, queries: Sequence[QueryModel]) -> list[Command]:
        try:
            return self.machine.answered(await self._answers(queries))
        except ModelError as exc:
            return [End(outcome_of(exc), str(exc))]

    async def _answers(self, queries: Sequence[QueryModel]) -> list[TimedCompletion]:
        """Query several models in parallel. Raises the first failure."""
        if len(queries) == 1:
            return [await self._answer(queries[0])]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._answer(query)) for query in queries]
        except* (ModelError, ConnectionLost) as group_error:
            lost = [exc for exc in group_error.exceptions if isinstance(exc, ConnectionLost)]
            error = (lost or group_error.exceptions)[0]
        else:
            return [task.result() for task in tasks]
        raise error

    async def _answer(self, query: QueryModel) -> TimedCompletion:
        clock = self.calls.recorder.clock
        at = clock.ms
        async with self._deltas(query) as on_delta:
            answer = await self.ask(query, on_delta)
        if notes := (*self._notes(), *self.calls.toolbox.notes()):
            answer = replace(answer, notes=(*notes, *answer.notes))
        return TimedCompletion(query, answer, at, clock.since(at))

    async def _run_tools(self, run: RunTools) -> list[Command]:
        results = await self.calls.run(run, self.base)
        names = {call.id: call.name for call in run.calls}
        self._read(run.step.n, (names.get(r.id, r.id) for r in results if r.untrusted))
        return self.machine.ran(results, self._notes())

    def _read(self, n: int, names: Iterable[str]) -> None:
        """Note that step `n` read untrusted content from these sources."""
        if fresh := self.calls.trust.read(names):
            self._untrusted[n] = fresh

    def _deltas(self, query: QueryModel) -> contextlib.AbstractAsyncContextManager[OnDelta | None]:
        """A context in which an answer is written; yields the callback for its deltas."""
        return contextlib.nullcontext()

    def _notes(self) -> tuple[str, ...]:
        """Problems outside the turn itself since the last call."""
        return ()


@dataclass(slots=True)
class TurnDriver(Driver):
    """Drives a whole turn: shows its activity, lets people steer it and calls hooks."""

    activity: TurnActivity = field(kw_only=True)
    hooks: HookChain = field(kw_only=True)
    steering_queue: SteeringQueue = field(kw_only=True)
    partials: Partials | None = field(default=None, kw_only=True)

    async def run(self, within: float) -> None:
        """Run until the turn's end is recorded, or it is parked. `within`: seconds."""
        try:
            async with asyncio.timeout(within) as limit:
                if self.hooks:
                    await self.calls.recorder.flush_start()
                await self.hooks.turn_started()
                await self._stop(await self.drive())
        except TimeoutError:
            if not limit.expired():
                raise  # unhandled inside the turn
            end = End("timeout", f"not finished after {within:g} s")
            await self._before_stop(end)
            await self._stop(end)

    async def _stop(self, stop: End | Park) -> None:
        recorder = self.calls.recorder
        match stop:
            case Park(step):
                await recorder.park()
                await self.activity.park(step)
            case End(outcome, reason, text):
                await recorder.end(outcome, reason, text)
                if awaits_answer(self.machine.steps):
                    await recorder.flush()  # the turn that continues it reads this record

    async def _ask(self, queries: Sequence[QueryModel]) -> list[Command]:
        await self.activity.show("thinking", queries[0].n)
        woken = self.steering_queue.waiting()
        steering = as_steering(woken)
        try:
            answers = await self._answers([query.with_steering(steering) for query in queries])
        except ModelError as exc:
            return [End(outcome_of(exc), str(exc))]
        self._read(queries[0].n, untrusted_ids(w.message for w in woken))
        self.steering_queue.accept(woken)
        before = len(self.machine.steps)
        commands = self.machine.answered(answers)
        for step in self.machine.steps[before : before + len(answers)]:
            await self.hooks.step_taken(step)
        return commands

    async def _run_tools(self, run: RunTools) -> list[Command]:
        await self.activity.show("calling", run.step.n, [call.name for call in run.calls])
        return await Driver._run_tools(self, run)

    def _deltas(self, query: QueryModel) -> contextlib.AbstractAsyncContextManager[OnDelta | None]:
        return contextlib.nullcontext() if self.partials is None else self.partials.of(query.n)

    def _notes(self) -> tuple[str, ...]:
        return self.hooks.notes()
