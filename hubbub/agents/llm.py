"""The backend of an agent with one model: runs the turn loop with model, tools and clock."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial

from hubbub.agents.backend import AgentBackend
from hubbub.agents.dialects.base import Dialect
from hubbub.agents.fork import ForkTool, HelperHost
from hubbub.agents.inbox import TurnPlan
from hubbub.agents.models.base import Completion, OnDelta
from hubbub.agents.output import Output
from hubbub.agents.parts import AgentModel, AgentParts, with_token_budget
from hubbub.agents.program import TurnOptions
from hubbub.agents.prompt.budget import ContextBudget
from hubbub.agents.prompt.builder import call_function
from hubbub.agents.prompt.render import ConversationPrompt
from hubbub.agents.prompt.system import position
from hubbub.agents.prompt_client import (
    PromptClient,
    callable_names,
    first_tool,
    initial_tools,
    quiet_tools,
)
from hubbub.agents.system_prompt import SystemPromptBuilder, has_untrusted_content
from hubbub.agents.tools.function import FunctionTool
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.standard_tools import ASK_HUMAN, external_proxies
from hubbub.agents.tools.tool_chooser import ToolChooser
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.trials import TrialRunner, TurnTrials
from hubbub.agents.turn.activity import TurnActivities
from hubbub.agents.turn.continuation import (
    QUESTION_PROMPT,
    Continuation,
    continued_steps,
    without_questions,
)
from hubbub.agents.turn.driver import SteeringQueue, StepCalls, TrustState, TurnDriver
from hubbub.agents.turn.hooks import HookChain
from hubbub.agents.turn.loop import FINISH, Loop, LoopRules, QueryModel
from hubbub.agents.turn.partial import Partials, SignalRate, unrefusable_tools
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.agents.turn.steps import FIRST_HELPER_STEP, split_steps
from hubbub.errors import ModelError, OperationError
from hubbub.protocol import thread_ids
from hubbub.protocol.external_tools import results_in, tools_in
from hubbub.protocol.frames import Ready, Signal
from hubbub.protocol.messages import Message
from hubbub.protocol.spending import Reservation
from hubbub.protocol.turns import (
    Layer,
    PromptParts,
    Step,
    ToolCallRecord,
    TurnEnd,
    TurnStart,
    Window,
)

__all__ = ["LlmBackend", "llm_backend"]


class LlmBackend(AgentBackend):
    """Takes turns by querying a model until it calls `finish`.

    `tools` builds the toolbox from the hub's operations; it is called for every connection.
    """

    def __init__(
        self,
        parts: AgentParts,
        model: AgentModel,
        prompt_builder: SystemPromptBuilder,
        tools: Callable[[Ready], Toolbox],
        fork: ForkTool | None,
    ):
        """`fork` is the tool of that name, if the agent has it."""
        client = parts.client
        self._outbox = parts.outbox
        self._program, self._output = parts.program, parts.objects.output
        self._on_event = parts.program.on_event if parts.program is not None else None
        self._inbox, self._config, self._chooser = parts.inbox, parts.config, parts.chooser
        self._model, self._template, self._make_tools = model, parts.template, tools
        self._prompt_builder, self._ready, self._tools = (
            prompt_builder,
            client.ready,
            tools(client.ready),
        )
        self._hooks, self._fork = parts.hooks, fork
        self._activities = TurnActivities(partial(client.signal, "activity"))
        self._send_partial = partial(client.signal, "partial")
        self._pace = SignalRate(client.hello.limits.calls_per_second)

    async def ready(self, ready: Ready) -> None:
        self._ready, self._tools = ready, self._make_tools(ready)
        await self._activities.repeat()

    async def prepare(self) -> None:
        for record in _RECORDS:
            record.model_rebuild()
            await asyncio.sleep(0)
        await self._tools.prepare()

    async def dropped(self, turn: str) -> None:
        await self._activities.drop(turn)

    async def take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        recorder.is_followed = self._program is not None
        plan = recorder.plan = await self._with_requester(await recorder.prepare())
        inbox, history = self._inbox, self._config.history
        conversation = ConversationPrompt.of(self._template, inbox.threads, plan, inbox.me, history)
        options = self._program.turn_options(plan) if self._program is not None else TurnOptions()
        output = options.output or self._output
        before, dialect = await self._earlier(recorder), self._model.choice.current
        toolbox, external = self._toolbox(plan, output)
        toolbox = await self._with_chosen(plan, await self._available(plan, toolbox, dialect))
        first = first_tool(toolbox, None if before.steps else self._config.begin_with)
        system = await self._prompt_builder.of(plan, toolbox, dialect, self._ready, inbox.threads)
        client = PromptClient(
            self._model.model,
            initial_tools(toolbox, first),
            system.body,
            ContextBudget(self._model.context, conversation, toolbox.writing),
            self._model.choice,
            _closing(system.closing, output, dialect),
            recorder.reservations,
            self._model.cost_model,
            settings=options.settings,
            contract=system.contract,
            form=output.form if output is not None else None,
            scratchpad=self._prompt_builder.scratchpad,
        )
        (system_prompt, prompt), names = client.first(), callable_names(toolbox, dialect)
        recorded = await recorder.begin(
            continues=before.turn,
            model=self._model.model.name,
            system_prompt=system_prompt,
            prompt=prompt,
            prompt_id=system.prompt_id,
            components=system.recorded,
            dialect=dialect.name,
            tools=names,
        )
        steps, helpers = split_steps(recorded)
        loop = Loop(self._rules(plan, toolbox, first, output, external), names, steps, before.steps)
        hooks = HookChain(self._hooks, plan, inbox.me, on_event=self._on_event)
        recorder.before_end = hooks.turn_ended
        is_untrusted = has_untrusted_content(
            conversation.in_thread, "knowledge" in system.components, toolbox
        )
        calls = StepCalls(toolbox, recorder, hooks.wrapper, TrustState(is_untrusted, loop.steps))
        ask = partial(self._ask, client, toolbox, loop)
        host = self._host(calls, client, loop, helpers)
        async with self._activities.of(plan) as activity, self._running_helpers(host):
            await TurnDriver(
                loop,
                calls,
                ask,
                join=host.join if host is not None else list,
                before_stop=host.before_stop if host is not None else None,
                activity=activity,
                hooks=hooks,
                steering_queue=SteeringQueue(inbox, plan.thread_id, self._config.steer),
                partials=self._partials(plan, toolbox, hooks),
            ).run(self._config.turn_timeout)

    async def _ask(
        self,
        client: PromptClient,
        toolbox: Toolbox,
        loop: Loop,
        query: QueryModel,
        on_delta: OnDelta | None,
    ) -> Completion:
        """Raises `ModelError`, unless only the wording of a question is requested."""
        asks = self._config.mode == "interactive"
        steps = without_questions(loop.steps) if asks else loop.steps
        if not query.wording_only:
            return await client.ask(steps, on_delta, query.steering, n=query.n)
        entry = toolbox.registry.get(ASK_HUMAN)
        specs = () if entry is None else (entry.tool.spec,)
        closing = f"{client.closing}\n\n{QUESTION_PROMPT}".strip()
        wording = replace(client, offers=lambda steps: specs, form=None, closing=closing)
        try:
            return await wording.ask(steps, None, query.steering, n=query.n)
        except ModelError as exc:
            return Completion(notes=(f"the model gave no words for the question: {exc}",))

    async def _with_requester(self, plan: TurnPlan) -> TurnPlan:
        """The plan, with the original request if delegated work comes back."""
        back = next((m for m in plan.incoming if m.request and m.request.ends), None)
        try:
            while back is not None and back.request is not None and back.request.ends:
                task = await self._message(back.request.id)
                back = await self._message((task.cause_id or "").rpartition("-")[2])
        except OperationError:
            return plan  # the agent is not (or no longer) allowed to read it
        return plan if back is None else replace(plan, original_request=back)

    async def _message(self, id: str) -> Message:
        return Message.model_validate(await self._outbox.call("read_message", id=id))

    def _toolbox(
        self, plan: TurnPlan, output: Output[object] | None
    ) -> tuple[Toolbox, frozenset[str]]:
        """The turn's tools, and the names of those that the requester runs."""
        finish = output.finishing(self._outbox) if output is not None else None
        needed = _request_tools(plan)
        toolbox = self._tools.for_turn(*needed, finish=finish)
        offered = tools_in(plan.incoming) if _has_json(plan) else ()
        if not offered:
            return toolbox, frozenset()
        external = external_proxies(offered, (*toolbox.names, SELECT), self._outbox)
        names = frozenset(tool.name for tool in external)
        return toolbox.for_turn(*needed, more=external), names

    async def _available(self, plan: TurnPlan, toolbox: Toolbox, dialect: Dialect) -> Toolbox:
        """The tools whose conditions hold. Raises `ConfigError` if a condition raises."""
        tools = (entry.tool for entry in toolbox.registry.entries)
        conditional = [t for t in tools if isinstance(t, FunctionTool) and t.when is not None]
        if not conditional:
            return toolbox
        threads = self._inbox.threads
        context = await self._prompt_builder.context(plan, toolbox, dialect, self._ready, threads)
        absent = [
            tool.name
            for tool in conditional
            if tool.when is not None
            and not await call_function(
                tool.when, context, f"the condition of the tool {tool.name!r}"
            )
        ]
        return toolbox.without(absent)

    async def _with_chosen(self, plan: TurnPlan, toolbox: Toolbox) -> Toolbox:
        """The toolbox; of many tools, it describes those that match the incoming text."""
        if self._chooser is None or not toolbox.listed_specs:
            return toolbox
        incoming_text = "\n".join(message.text for message in plan.incoming)
        return toolbox.with_described(
            await self._chooser.choose(incoming_text, toolbox.listed_specs)
        )

    def _partials(self, plan: TurnPlan, toolbox: Toolbox, hooks: HookChain) -> Partials:
        mode = self._config.permission_mode
        names = unrefusable_tools(toolbox.registry.entries, mode, self._hooks)
        on_text = hooks.text_written if hooks else None
        return Partials(self._send_partial, plan, self._inbox, names, self._pace, on_text=on_text)

    async def _earlier(self, recorder: TurnRecorder) -> Continuation:
        """The steps that this turn continues, if any. Only the mode `interactive` ends turns with a
        question, and only calls that the requester runs return results in a message.
        """
        plan = recorder.plan
        has_results = _has_json(plan) and results_in(plan.incoming)
        if self._config.mode == "auto" and not has_results:
            return Continuation()
        messages, me = self._inbox.messages(plan.thread_id), self._inbox.me
        return await continued_steps(messages, plan, me, recorder.other, below=FIRST_HELPER_STEP)

    def _host(
        self, calls: StepCalls, client: PromptClient, loop: Loop, recorded: Sequence[Step]
    ) -> HelperHost | None:
        """The host of the turn's helpers; None if the agent has no tool `fork`."""
        if self._fork is None:
            return None
        shows = self._wakes_no_agent(calls.recorder.plan)
        return HelperHost(
            self._fork.config, calls, client, loop, recorded, self._outbox, shows=shows
        )

    def _running_helpers(
        self, host: HelperHost | None
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """A context in which the turn's helpers run."""
        if self._fork is None or host is None:
            return contextlib.nullcontext()
        return self._fork.hosted(host.calls.recorder.plan.id, host)

    def _wakes_no_agent(self, plan: TurnPlan) -> bool:
        """Whether replies under the incoming message wake no other agent."""
        humans = {p.id for p in self._ready.participants if p.kind == "human"}
        humans |= {m.sender_id for m in plan.incoming if m.sender_kind == "human"}
        others = {m for m in thread_ids.members_of(plan.thread_id) if m != self._inbox.me}
        return others <= humans  # agents that joined later are not in `ready`

    def _rules(
        self,
        plan: TurnPlan,
        toolbox: Toolbox,
        first: str | None,
        output: Output[object] | None,
        external: frozenset[str],
    ) -> LoopRules:
        return LoopRules(
            max_steps=self._config.max_steps,
            max_tokens=self._config.max_tokens,
            reply_required=plan.reply_required,
            speaking=toolbox.speaking,
            quiet=quiet_tools(toolbox) if self._config.mode == "interactive" else None,
            begin_with=first,
            final_text=self._config.final_text,
            typed=output.name if output is not None else "",
            external=external,
        )


def _closing(closing: str, output: Output[object] | None, dialect: Dialect) -> str:
    """The last text that a model reads; without `finish`, it includes the answer's schema."""
    if output is None or FINISH not in dialect.hides:
        return closing
    return f"{closing}\n\nYour answer is JSON that fits this schema: {output.schema_text}".strip()


def _has_json(plan: TurnPlan) -> bool:
    """Whether an incoming message can carry more than text."""
    return any(isinstance(message.content, dict) for message in plan.incoming)


_RECORDS = (
    Reservation, TurnStart, PromptParts, Layer, Window, Signal, ToolCallRecord, Step, TurnEnd,
)  # fmt: skip
"""Models used in every turn; building their validators takes a few milliseconds."""


def _request_tools(plan: TurnPlan) -> Sequence[str]:
    """Tools offered only for a request that is incoming or waiting for the answer."""
    messages = (*plan.incoming, plan.original_request)
    return ("report",) if any(m is not None and m.task is not None for m in messages) else ()


class RolloutBackend(AgentBackend):
    """Two backends of one agent: the regular one, and one that serves a share of the threads. A
    thread and its reply threads keep their backend while the share stays above their position.
    """

    def __init__(self, backend: AgentBackend, rolled_out: AgentBackend, agent: str, share: float):
        self._backend, self._rolled_out, self._agent, self._share = (
            backend,
            rolled_out,
            agent,
            share,
        )

    async def ready(self, ready: Ready) -> None:
        for backend in (self._backend, self._rolled_out):
            await backend.ready(ready)

    async def prepare(self) -> None:
        for backend in (self._backend, self._rolled_out):
            await backend.prepare()

    async def dropped(self, turn: str) -> None:
        for backend in (self._backend, self._rolled_out):
            await backend.dropped(turn)

    async def take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        rolled_out = position(self._agent, thread_ids.root(plan.thread_id), "") < self._share
        await (self._rolled_out if rolled_out else self._backend).take_turn(plan, recorder)


# From the YAML of an agent with one model to its backend.


@contextlib.asynccontextmanager
async def llm_backend(parts: AgentParts) -> AsyncIterator[tuple[AgentBackend, TurnTrials]]:
    """The backend of an agent with one model, and the trials of its turns, while the block runs.

    Raises `ConfigError` when a tool, a model or a prompt file does not exist.
    """
    rollout = parts.config.rollout
    async with contextlib.AsyncExitStack() as stack:
        backend, trials = await stack.enter_async_context(_one_backend(parts))
        if rollout is None:
            yield backend, trials
            return
        other = replace(parts, config=parts.config.rolled_out(rollout))
        rolled_out, _ = await stack.enter_async_context(_one_backend(other))
        yield RolloutBackend(backend, rolled_out, parts.name, rollout.share), trials


@contextlib.asynccontextmanager
async def _one_backend(parts: AgentParts) -> AsyncIterator[tuple[AgentBackend, TurnTrials]]:
    config, prompts = parts.config, parts.prompts()
    # In the mode `interactive`, every step can end the turn, so no helper runs in the background.
    background = config.mode == "auto"
    fork = ForkTool(config.fork, background=background) if config.fork is not None else None
    more = () if fork is None else fork.tools
    scratchpad, key = prompts.settings.scratchpad, f"agents.{parts.name}.model"
    async with parts.open_model(config.model, key, scratchpad=scratchpad) as model:
        tool_policy = with_token_budget(parts.tool_policy, model.context)
        tools = parts.tools(tool_policy, more, prompts.operator_text)
        runner = TrialRunner(config, parts.models, tools, scratchpad)
        prompt_builder = parts.prompt_builder(prompts, model.model.name)
        chooser = ToolChooser.of(config, parts.models)
        parts = replace(parts, chooser=chooser)
        try:
            backend = LlmBackend(parts, model, prompt_builder, tools, fork)
            yield backend, TurnTrials(parts.client, runner)
        finally:
            if chooser is not None:
                await chooser.close()
