"""A turn taken by a guest: another program, or another framework's agent.

The guest's `run` gets the conversation as a prompt and network operations as tools. It reports its
work with `record_answer`, `record_result` and `stream_text`, which fill the turn's record and show
people what it is doing. The text it returns is sent as the answer.
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
from pydantic_core import to_jsonable_python

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
from hubbub.interop.answer import ANSWER, AnswerTool, end_after, truncate
from hubbub.interop.tools import offered
from hubbub.protocol.frames import Ready
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["Guest", "GuestBackend", "GuestPrompt", "GuestTurn", "text_of"]

_PREFACE = (
    "You are {name} in the network {network}. Your answer is sent to the person or agent that "
    "wrote to you, in the thread that woke you; to write to others, use the network's tools."
)


class Guest(Protocol):
    """Takes whole turns.

    `network_tools` names the operations of the hub and its mods offered as tools; `model` is
    written to the turns' records.
    """

    @property
    def model(self) -> str | None: ...
    @property
    def network_tools(self) -> Sequence[str]: ...

    async def run(self, turn: GuestTurn) -> str:
        """Take a turn and return the answer; an empty answer is not sent.

        Cancelled when a person stops the turn. A `ModelError` ends the turn as `model_error`, any
        other exception as `handler_error`.
        """
        ...


@dataclass(frozen=True)
class GuestPrompt:
    """The prompt of one turn."""

    system: str
    prompt: str
    is_untrusted: bool
    """Whether the prompt contains content from outside the network."""


class GuestTurn:
    """One turn, as the guest sees it."""

    prompt: str
    """The conversation: the agent's threads and the incoming messages."""
    system: str
    """The agent's identity in the network, to add to its own instructions."""
    tools: tuple[ToolSpec, ...]
    """The network's tools: name, description and JSON Schema. `call` runs one."""
    plan: TurnPlan
    """The turn's id, its thread, and the messages it answers."""

    def __init__(
        self, backend: GuestBackend, plan: TurnPlan, calls: StepCalls, activity: TurnActivity
    ):
        self._backend, self.plan, self._calls, self._activity = backend, plan, calls, activity
        self.steps: list[Step] = []
        self.links: list[JsonValue] = []
        """Attachments of the answer that are stored outside the network."""
        self.is_question = False
        """Whether the answer asks back about a request instead of completing it."""
        self.stopped: End | None = None
        self._work: asyncio.Task[str] | None = None
        self._written = 0.0

    # Reported by the guest ----------------------------------------------------------------------

    async def record_answer(
        self,
        text: str | None = None,
        calls: Sequence[CallRequest] = (),
        *,
        tokens_in: int = 0,
        tokens_out: int = 0,
        reasoning: str | None = None,
    ) -> None:
        """Record a model response as a step of the turn. Its `calls` are about to run."""
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

    def record_result(self, id: str, result: object, error: str | None = None) -> None:
        """Record the result of one of the agent's own tools, as its model sees it; `error` is the
        kind of failure. Like every function result, it counts as content from outside the network.
        """
        open_calls = [c for c in self._step.calls if c.id == id and c.result is None]
        if not open_calls:  # a network tool, recorded by `call`
            return
        names = self._calls.trust.read(call.name for call in open_calls)
        if names:
            untrusted = (*self._step.untrusted, *names)
            self._record(self._step.model_copy(update={"untrusted": untrusted}))
        self._record_results([CallResult(id, self._fit(text_of(result)), error)])

    async def call(self, name: str, arguments: Mapping[str, JsonValue], id: str = "") -> str:
        """Run a network tool and return its result, or its failure, as the model sees it.

        `id` is the id of the model's call, if the framework provides it. A call that was not in a
        recorded answer is added to the last one.
        """
        pending = [c for c in self._step.calls if c.name == name and c.result is None]
        same = (c for c in pending if c.id == id or (not id and c.arguments == dict(arguments)))
        recorded = next(same, None)
        call = recorded or ToolCallRecord(
            id=f"call_{len(self._step.calls) + 1}", name=name, arguments=dict(arguments)
        )
        if recorded is None:
            calls = (*self._step.calls, call)
            self._record(self._step.model_copy(update={"calls": calls}))
        result = (await self._calls.run(RunTools(self._step, (call,), again=False)))[0]
        self._record_results([result])
        return result.result

    async def stream_text(self, text: str) -> None:
        """Show the text the model has written so far, which can become the answer."""
        now = time.monotonic()
        if self._backend.streams and text and now - self._written >= self._backend.pace.pause_s:
            self._written = now
            shown = text if len(text) <= MOST_TEXT else f"…{text[-MOST_TEXT:]}"
            data: dict[str, JsonValue] = {
                "turn": self.plan.id,
                "step": len(self.steps) + 1,
                "text": shown,
            }
            await self._backend.client.signal("partial", self.plan.thread_id, data)

    def record_progress(self, text: str) -> None:
        """Set the text of the last step to the agent's note on its work."""
        self._record(self._step.model_copy(update={"text": self._fit(text) or None}))

    async def reserve(self) -> None:
        """Reserve budget for one more model call.

        Ends the turn, and never returns, if a budget is exhausted or `max_steps` is reached.
        """
        n, config = len(self.steps) + 1, self._backend.config
        if n > config.max_steps:
            await self._stop(End("max_steps", f"not finished after {config.max_steps} steps"))
        await self._activity.show("thinking", n)
        cost_model = CostModel()
        reads = TokenEstimate().count(self.system + self.prompt)
        try:
            await self._calls.recorder.reservations.take(n, reads + cost_model.writes, 0.0)
        except ModelError as exc:
            await self._stop(End(outcome_of(exc), str(exc)))

    # Running ------------------------------------------------------------------------------------

    async def take(self, agent: Guest, before: Sequence[Step]) -> End:
        """Run the agent, send its answer, and return how the turn ended.

        `before` are the steps recorded by an earlier process, which may have reached the answer.
        """
        answer = next((call for step in before for call in step.calls if call.name == ANSWER), None)
        if answer is not None:  # the earlier process may have sent it
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
            if self._work.cancelled() and not _is_cancelled():  # otherwise the turn was stopped
                raise RuntimeError("the run cancelled itself") from exc
            raise
        finally:
            self._work.cancel()
        if not text.strip() or (self._request is None and self._has_posted()):
            return End("finished", text=text or None)
        return await self._send(self._answer_call(text))

    async def _run(self, agent: Guest) -> str:
        try:
            await self.reserve()
            return await agent.run(self)
        except ModelError as exc:
            self.stopped = End(outcome_of(exc), str(exc))
            raise asyncio.CancelledError from exc

    async def _stop(self, end: End) -> None:
        assert self._work is not None, "the run has started"
        self.stopped = end
        self._work.cancel()
        # Never return, even if the framework swallows the cancellation.
        await asyncio.get_running_loop().create_future()

    def _answer_call(self, text: str) -> ToolCallRecord:
        arguments: dict[str, JsonValue] = {"text": truncate(text, self._backend.text_bytes)}
        if self._request is not None:
            arguments["request"] = self._request
            if self.is_question:
                arguments["status"] = "question"
        if self.links:
            arguments["links"] = self.links
        call = ToolCallRecord(id=f"{ANSWER}_{len(self.steps)}", name=ANSWER, arguments=arguments)
        self._record(self._step.model_copy(update={"calls": (*self._step.calls, call)}))
        return call

    async def _send(self, answer: ToolCallRecord, *, again: bool = False) -> End:
        results = await self._calls.run(RunTools(self._step, (answer,), again=again))
        self._record_results(results)
        return end_after(next(call for call in self._step.calls if call.id == answer.id))

    @property
    def _request(self) -> str | None:
        """The request that the turn works on."""
        return next((m.task for m in self.plan.incoming if m.task), None)

    def _has_posted(self) -> bool:
        """Whether the run already posted to the turn's own thread with a tool."""
        inbox, last_incoming = self._backend.inbox, self.plan.incoming[-1].seq
        thread = inbox.thread(self.plan.thread_id)
        messages = thread.messages if thread is not None else ()
        return any(m.sender_id == inbox.me and m.seq > last_incoming for m in messages)

    @property
    def _step(self) -> Step:
        """The last step, or a new one for a call made before any recorded answer."""
        return self.steps[-1] if self.steps else Step(n=1, at_ms=self._calls.recorder.clock.ms)

    def _record(self, step: Step) -> None:
        self.steps[step.n - 1 :] = [step]
        self._calls.recorder.step(step)

    def _record_results(self, results: Sequence[CallResult]) -> None:
        """Record each result in the step that made the call."""
        for result in results:
            for step in reversed(self.steps):
                if any(call.id == result.id for call in step.calls):
                    calls = tuple(
                        with_result(call, result if call.id == result.id else None)
                        for call in step.calls
                    )
                    changed = step.model_copy(update={"calls": calls})
                    self.steps[step.n - 1] = changed
                    self._calls.recorder.step(changed)
                    break

    def _fit(self, text: str) -> str:
        return fit_result(text, self._backend.config.result_budget, TokenEstimate())


@dataclass
class GuestBackend(AgentBackend):
    """Runs each turn with a guest."""

    agent: Guest
    client: Client
    inbox: Inbox
    config: AgentConfig
    pace: SignalRate = field(default_factory=SignalRate)
    streams: bool = False
    """Whether an answer can be shown before it is sent: no gate or person can still refuse it."""

    def __post_init__(self) -> None:
        outbox = Outbox(self.client, self.inbox)
        answer = AnswerTool(outbox, self.client.offers, Path())
        config = self.config.model_copy(update={"tools": [*self.agent.network_tools]})
        kit = ToolKit(
            config, self.inbox.me, Path(), tool_policy=tool_policy_of(config), more=[answer]
        )
        self._make_tools = partial(kit.toolbox, caller=outbox)
        self._template = ConversationTemplate.shipped()
        self._activities = TurnActivities(partial(self.client.signal, "activity"))
        self.text_bytes = self.client.hello.limits.text_bytes
        self._set_tools(self.client.ready)

    def _set_tools(self, ready: Ready) -> None:
        self._tools: Toolbox = self._make_tools(ready)
        entries = self._tools.registry.entries
        self.streams = ANSWER in unrefusable_tools(entries, self.config.permission_mode, ())

    async def ready(self, ready: Ready) -> None:
        self._set_tools(ready)
        await self._activities.repeat()

    async def dropped(self, turn: str) -> None:
        await self._activities.drop(turn)

    def prompt_for(self, plan: TurnPlan) -> GuestPrompt:
        """The agent's threads as a prompt, with its identity as the system prompt."""
        inbox, history = self.inbox, self.config.history
        conversation = ConversationPrompt.of(
            self._template, inbox.threads, plan, inbox.me, history, PROGRAM_CLOSING
        )
        system = _PREFACE.format(name=inbox.me, network=self.client.network)
        return GuestPrompt(system, conversation.text, bool(untrusted_ids(conversation.in_thread)))

    async def take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        plan = await recorder.prepare()
        config, toolbox, prompt = self.config, self._tools.for_turn(), self.prompt_for(plan)
        tools = tuple(offered(toolbox, ANSWER))
        steps = await recorder.begin(
            model=self.agent.model,
            system_prompt=prompt.system,
            prompt=prompt.prompt,
            tools=tuple(tool.name for tool in tools),
        )
        await recorder.flush_start()  # so a crash of the run is attributed to this turn
        trust = TrustState(prompt.is_untrusted, steps)
        try:
            async with (
                self._activities.of(plan) as activity,
                asyncio.timeout(config.turn_timeout) as limit,
            ):
                turn = GuestTurn(self, plan, StepCalls(toolbox, recorder, None, trust), activity)
                turn.prompt, turn.system, turn.tools = prompt.prompt, prompt.system, tools
                end = await turn.take(self.agent, steps)
        except TimeoutError:
            if not limit.expired():
                raise  # raised by the run itself
            await self.dropped(plan.id)
            end = End("timeout", f"not finished after {config.turn_timeout:g} s")
        await recorder.end(end.outcome, end.reason, end.text)


def text_of(result: object) -> str:
    """The result as text: a string unchanged, None as "", anything else as JSON, with models and
    dataclasses as objects."""
    if isinstance(result, str):
        return result
    if result is None:
        return ""
    return json.dumps(to_jsonable_python(result, fallback=str), ensure_ascii=False)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _recorded(call: CallRequest) -> ToolCallRecord:
    try:
        return ToolCallRecord(id=call.id, name=call.name, arguments=read_arguments(call.arguments))
    except ValueError:  # not JSON: record them as the model wrote them
        return ToolCallRecord(id=call.id, name=call.name, arguments=call.arguments)
