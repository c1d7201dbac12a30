"""A turn that somebody else takes: what its guest is given, and what it tells of its work.

The guest's run gets the conversation as a prompt, and operations of the network as tools. What it
tells (`answered`, `called`, `writing`) becomes the turn's record and what people see of it; what it
returns is sent as the answer.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from hubbub.agents.backend import AgentBackend
from hubbub.agents.inbox import Inbox, TurnPlan
from hubbub.agents.models.base import CallRequest, ToolSpec
from hubbub.agents.prompt.render import PROGRAM_CLOSING, ConversationPrompt, ConversationTemplate
from hubbub.agents.prompt.tokens import TokenEstimate
from hubbub.agents.tools.assembly import ToolKit, tool_policy_of
from hubbub.agents.tools.results import fit_result
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.activity import TurnActivities, TurnActivity
from hubbub.agents.turn.driver import StepCalls, TrustState, untrusted_ids
from hubbub.agents.turn.loop import CallResult, End, RunTools
from hubbub.agents.turn.outbox import Outbox
from hubbub.agents.turn.partial import MOST_TEXT, SignalRate, unrefusable_tools
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.agents.turn.reservations import CostModel, outcome_of
from hubbub.agents.turn.steps import read_arguments, with_result
from hubbub.client import Client
from hubbub.config.agents import AgentConfig
from hubbub.errors import ModelError
from hubbub.interop.answer import ANSWER, AnswerTool, cut, end_after
from hubbub.interop.tools import offered
from hubbub.protocol.frames import Ready
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["Guest", "GuestBackend", "GuestPrompt", "GuestTurn", "text_of"]

_PREFACE = (
    "You are {name} in the network {network}. What you answer is sent to whoever wrote to you, in "
    "the thread that woke you; to write to others, use the network's tools."
)


class Guest(Protocol):
    """Who takes whole turns. `network_tools` are operations of the hub and its mods that it is
    offered as tools; `model` stands in the turns' records.
    """

    @property
    def model(self) -> str | None: ...
    @property
    def network_tools(self) -> Sequence[str]: ...

    async def run(self, turn: GuestTurn) -> str:
        """Take a turn, and return the answer; an empty one is not sent. Cancelled when people stop
        the turn. `ModelError` ends it as `model_error`, anything else as `handler_error`.
        """
        ...


@dataclass(frozen=True)
class GuestPrompt:
    """What a guest is told of a turn."""

    system: str
    prompt: str
    outside: bool
    """Whether that carries content from outside the network."""


class GuestTurn:
    """One turn, as the framework's run sees it."""

    prompt: str
    """The conversation: the agent's threads, and what has come."""
    system: str
    """Who the agent is in the network: to be added to its own instructions."""
    tools: tuple[ToolSpec, ...]
    """The network's tools, by name, description and JSON Schema: `call` runs them."""
    plan: TurnPlan
    """The turn itself: its id, its thread, and the messages that it answers."""

    def __init__(
        self, place: GuestBackend, plan: TurnPlan, calls: StepCalls, activity: TurnActivity
    ):
        self._place, self.plan, self._calls, self._activity = place, plan, calls, activity
        self.steps: list[Step] = []
        self.links: list[JsonValue] = []
        """Files elsewhere that the answer links, as attachments of a message."""
        self.asks_back = False
        """Whether the answer is a question, without which there is no result."""
        self.stopped: End | None = None
        self._work: asyncio.Task[str] | None = None
        self._written = 0.0

    # What the run tells -------------------------------------------------------------------------

    async def answered(
        self,
        text: str | None = None,
        calls: Sequence[CallRequest] = (),
        *,
        tokens_in: int = 0,
        tokens_out: int = 0,
        reasoning: str | None = None,
    ) -> None:
        """The model has answered: a step of the turn. Its `calls` are about to run."""
        step = Step(
            n=len(self.steps) + 1,
            text=text or None,
            calls=tuple(_recorded(call) for call in calls),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            reasoning=reasoning or None,
            at_ms=self._calls.recorder.clock.ms,
        )
        self._record(step)
        if calls:
            await self._activity.show("calling", step.n, [call.name for call in calls])
            await self.reserve()

    def called(self, id: str, result: object, error: str | None = None) -> None:
        """A tool of the agent's own has run: what its model is told, and what kind of failure it
        was. It is taken to come from outside the network, as all that functions bring.
        """
        open_calls = [c for c in self._step.calls if c.id == id and c.result is None]
        if not open_calls:  # the network's own, which has run by `call`
            return
        told = self._fit(text_of(result))
        names = self._calls.trust.read(call.name for call in open_calls)
        if names:
            fresh = (*self._step.untrusted, *names)
            self._record(self._step.model_copy(update={"untrusted": fresh}))
        self._settle([CallResult(id, told, error)])

    async def call(self, name: str, arguments: Mapping[str, JsonValue], id: str = "") -> str:
        """Run a tool of the network: its result as the model is told it, failures too. `id` is the
        model's call, where the framework says which it was. A call that no answer has told of is
        recorded with the last one.
        """
        asked = [c for c in self._step.calls if c.name == name and c.result is None]
        same = (c for c in asked if c.id == id or (not id and c.arguments == dict(arguments)))
        known = next(same, None)
        call = known or ToolCallRecord(
            id=f"call_{len(self._step.calls) + 1}", name=name, arguments=dict(arguments)
        )
        if known is None:
            calls = (*self._step.calls, call)
            self._record(self._step.model_copy(update={"calls": calls}))
        result = (await self._calls.run(RunTools(self._step, (call,), again=False)))[0]
        self._settle([result])
        return result.result

    async def writing(self, text: str) -> None:
        """The model has written so much of a text that may become the answer."""
        now = time.monotonic()
        if self._place.streams and text and now - self._written >= self._place.pace.pause_s:
            self._written = now
            shown = text if len(text) <= MOST_TEXT else f"…{text[-MOST_TEXT:]}"
            data: dict[str, JsonValue] = {
                "turn": self.plan.id,
                "step": len(self.steps) + 1,
                "text": shown,
            }
            await self._place.client.signal("partial", self.plan.thread_id, data)

    def progress(self, text: str) -> None:
        """What the agent says of its work stands as the text of the last step."""
        self._record(self._step.model_copy(update={"text": self._fit(text) or None}))

    async def reserve(self) -> None:
        """Leave to ask the model once more. Does not return where a budget is exhausted, or the
        turn has as many steps as it may have: then it is over.
        """
        n, config = len(self.steps) + 1, self._place.config
        if n > config.max_steps:
            await self._stop(End("max_steps", f"not finished after {config.max_steps} steps"))
        await self._activity.show("thinking", n)
        cost_model = CostModel()
        reads = TokenEstimate().count(self.system + self.prompt)
        try:
            await self._calls.recorder.reservations.take(n, reads + cost_model.writes, 0.0)
        except ModelError as exc:
            await self._stop(End(outcome_of(exc), str(exc)))

    # How it is taken ----------------------------------------------------------------------------

    async def take(self, agent: Guest, before: Sequence[Step]) -> End:
        """Run the agent, send its answer, and say how the turn ends. `before`: the steps of an
        earlier process, which may have come as far as the answer.
        """
        answer = next((call for step in before for call in step.calls if call.name == ANSWER), None)
        if answer is not None:  # it was about to be sent, and perhaps is
            self.steps = list(before)
            return (
                await self._send(answer, again=True) if answer.result is None else End("finished")
            )
        self._work = asyncio.create_task(self._run(agent))
        try:
            text = await self._work
        except asyncio.CancelledError as exc:
            if self.stopped is not None:
                return self.stopped
            if self._work.cancelled() and not _is_cancelled():  # else the turn is stopped
                raise RuntimeError("the run has cancelled itself") from exc
            raise
        finally:
            self._work.cancel()
        if not text.strip() or (self._task is None and self._has_spoken()):
            return End("finished", text=text or None)
        return await self._send(self._answer(text))

    async def _run(self, agent: Guest) -> str:
        try:
            await self.reserve()
            return await agent.run(self)
        except ModelError as exc:
            self.stopped = End(outcome_of(exc), str(exc))
            raise asyncio.CancelledError from exc

    async def _stop(self, end: End) -> None:
        assert self._work is not None, "it runs"
        self.stopped = end
        self._work.cancel()
        await asyncio.get_running_loop().create_future()  # whatever a framework catches on its way

    def _answer(self, text: str) -> ToolCallRecord:
        said: dict[str, JsonValue] = {"text": cut(text, self._place.text_bytes)}
        if self._task is not None:
            said["request"] = self._task
            if self.asks_back:
                said["status"] = "question"
        if self.links:
            said["links"] = self.links
        call = ToolCallRecord(id=f"{ANSWER}_{len(self.steps)}", name=ANSWER, arguments=said)
        self._record(self._step.model_copy(update={"calls": (*self._step.calls, call)}))
        return call

    async def _send(self, answer: ToolCallRecord, *, again: bool = False) -> End:
        self._settle(await self._calls.run(RunTools(self._step, (answer,), again=again)))
        return end_after(next(call for call in self._step.calls if call.id == answer.id))

    @property
    def _task(self) -> str | None:
        """The request that the turn works on."""
        return next((m.task for m in self.plan.incoming if m.task), None)

    def _has_spoken(self) -> bool:
        """Whether it has said something in the turn's own thread already, by a tool."""
        inbox, came = self._place.inbox, self.plan.incoming[-1].seq
        thread = inbox.thread(self.plan.thread_id)
        said = thread.messages if thread is not None else ()
        return any(m.sender_id == inbox.me and m.seq > came for m in said)

    @property
    def _step(self) -> Step:
        """The last step; one that nothing has told of begins with a call."""
        return self.steps[-1] if self.steps else Step(n=1, at_ms=self._calls.recorder.clock.ms)

    def _record(self, step: Step) -> None:
        self.steps[step.n - 1 :] = [step]
        self._calls.recorder.step(step)

    def _settle(self, results: Sequence[CallResult]) -> None:
        """These results are recorded, each in the step that has made the call."""
        for result in results:
            for step in reversed(self.steps):
                if any(call.id == result.id for call in step.calls):
                    same = [result if call.id == result.id else None for call in step.calls]
                    pairs = zip(step.calls, same, strict=True)
                    calls = tuple(with_result(call, given) for call, given in pairs)
                    self._replace(step.model_copy(update={"calls": calls}))
                    break

    def _replace(self, step: Step) -> None:
        self.steps[step.n - 1] = step
        self._calls.recorder.step(step)

    def _fit(self, text: str) -> str:
        return fit_result(text, self._place.config.result_budget, TokenEstimate())


@dataclass
class GuestBackend(AgentBackend):
    """Takes turns by letting a guest take them."""

    agent: Guest
    client: Client
    inbox: Inbox
    config: AgentConfig
    pace: SignalRate = field(default_factory=SignalRate)
    streams: bool = False
    """Whether an answer may be shown before it is sent: nothing and nobody may yet refuse it."""

    def __post_init__(self) -> None:
        outbox = Outbox(self.client, self.inbox)
        answer = AnswerTool(outbox, self.client.offers, Path())
        named = self.config.model_copy(update={"tools": [*self.agent.network_tools]})
        kit = ToolKit(
            named, self.inbox.me, Path(), tool_policy=tool_policy_of(named), more=[answer]
        )
        self._make_tools = partial(kit.toolbox, caller=outbox)
        self._template = ConversationTemplate.shipped()
        self._activities = TurnActivities(partial(self.client.signal, "activity"))
        self.text_bytes = self.client.hello.limits.text_bytes
        self._take_tools(self.client.ready)

    def _take_tools(self, ready: Ready) -> None:
        self._tools: Toolbox = self._make_tools(ready)
        entries = self._tools.registry.entries
        self.streams = ANSWER in unrefusable_tools(entries, self.config.permission_mode, ())

    async def ready(self, ready: Ready) -> None:
        self._take_tools(ready)
        await self._activities.repeat()

    async def dropped(self, turn: str) -> None:
        await self._activities.drop(turn)

    def told(self, plan: TurnPlan) -> GuestPrompt:
        """What the guest is told: its threads, with the preface of who it is."""
        inbox, history = self.inbox, self.config.history
        conversation = ConversationPrompt.of(
            self._template, inbox.threads, plan, inbox.me, history, PROGRAM_CLOSING
        )
        system = _PREFACE.format(name=inbox.me, network=self.client.network)
        return GuestPrompt(system, conversation.text, bool(untrusted_ids(conversation.in_thread)))

    async def take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        plan = await recorder.prepare()
        config, toolbox, told = self.config, self._tools.for_turn(), self.told(plan)
        tools = tuple(offered(toolbox, ANSWER))
        steps = await recorder.begin(
            model=self.agent.model,
            system_prompt=told.system,
            prompt=told.prompt,
            tools=tuple(tool.name for tool in tools),
        )
        await recorder.flush_start()  # who dies of the run has died in this turn
        taint = TrustState(told.outside, steps)
        try:
            async with (
                self._activities.of(plan) as activity,
                asyncio.timeout(config.turn_timeout) as limit,
            ):
                turn = GuestTurn(self, plan, StepCalls(toolbox, recorder, None, taint), activity)
                turn.prompt, turn.system, turn.tools = told.prompt, told.system, tools
                end = await turn.take(self.agent, steps)
        except TimeoutError:
            if not limit.expired():
                raise  # the run's own
            await self.dropped(plan.id)
            end = End("timeout", f"not finished after {config.turn_timeout:g} s")
        await recorder.end(end.outcome, end.reason, end.text)


def text_of(result: object) -> str:
    """A result as a text: JSON, where it is neither a text nor None."""
    if isinstance(result, str):
        return result
    return "" if result is None else json.dumps(result, ensure_ascii=False, default=str)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _recorded(call: CallRequest) -> ToolCallRecord:
    try:
        return ToolCallRecord(id=call.id, name=call.name, arguments=read_arguments(call.arguments))
    except ValueError:  # as the model gave them
        return ToolCallRecord(id=call.id, name=call.name, arguments=call.arguments)
