"""The backend of an agent with roles, or with a pipeline of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import get_args

from hubbub.agents.backend import AgentBackend
from hubbub.agents.inbox import TurnPlan
from hubbub.agents.parts import AgentModel, AgentParts
from hubbub.agents.prompt.context import ParticipantSummary
from hubbub.agents.prompt.render import ConversationPrompt
from hubbub.agents.python.link import AgentLink
from hubbub.agents.roles.context import RoleContext, askable_agents, callable_by_plans
from hubbub.agents.roles.pipeline import AskRole, Kind, PipelineRules, RolePipeline
from hubbub.agents.system_prompt import SystemPromptBuilder, has_untrusted_content
from hubbub.agents.tools.ask_agent import AskAgent
from hubbub.agents.tools.standard_tools import reply_tool
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.activity import TurnActivities
from hubbub.agents.turn.continuation import continued_steps
from hubbub.agents.turn.driver import SteeringQueue, StepCalls, TrustState, TurnDriver
from hubbub.agents.turn.hooks import HookChain
from hubbub.agents.turn.loop import Command
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.agents.turn.reservations import Reservations
from hubbub.config.agents import ROLES_OF
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Participants
from hubbub.protocol.turns import Role, Step

__all__ = ["KINDS", "role_backend"]


class RoleBackend(AgentBackend):
    """Takes turns according to the agent's kind. `models` has a model for each of its roles."""

    def __init__(
        self,
        parts: AgentParts,
        models: Mapping[Role, AgentModel],
        prompt_builder: SystemPromptBuilder,
        link: AgentLink,
        tools: Callable[[Ready], Toolbox],
    ):
        """`tools` builds the toolbox from the hub's operations, for every connection."""
        self._kind = KINDS[parts.config.kind]
        self._client, self._inbox, self._config = parts.client, parts.inbox, parts.config
        self._on_event = parts.program.on_event if parts.program is not None else None
        self._models, self._template, self._link = models, parts.template, link
        self._prompt_builder, self._ready = prompt_builder, parts.client.ready
        self._make_tools, self._tools, self._hooks = tools, tools(self._ready), parts.hooks
        self._activities = TurnActivities(partial(parts.client.signal, "activity"))

    async def ready(self, ready: Ready) -> None:
        self._ready, self._tools = ready, self._make_tools(ready)
        self._link.connected(ready)
        await self._activities.repeat()

    def claims(self, message: Message) -> asyncio.Future[bool] | None:
        return self._link.claim(message)

    async def dropped(self, turn: str) -> None:
        await self._activities.drop(turn)

    async def take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        recorder.is_followed = self._on_event is not None
        try:
            await self._take_turn(await recorder.prepare(), recorder)
        finally:
            self._link.release_answers_for(plan.id)

    async def _take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        me = self._inbox.me
        earlier = await continued_steps(
            self._inbox.messages(plan.thread_id), plan, me, recorder.other
        )
        history = self._config.history
        conversation = ConversationPrompt.of(self._template, self._inbox.threads, plan, me, history)
        role_context = await self._role_context(plan, conversation, recorder.reservations)
        first = RolePipeline(self._rules(plan), role_context.executors, (), earlier.steps).start()[
            0
        ]
        steps = await self._begin(recorder, role_context, first, earlier.turn)
        pipeline = RolePipeline(self._rules(plan), role_context.executors, steps, earlier.steps)
        hooks = HookChain(self._hooks, plan, me, on_event=self._on_event)
        recorder.before_end = hooks.turn_ended
        has_knowledge = bool(role_context.context.knowledge)
        untrusted = has_untrusted_content(
            conversation.in_thread, has_knowledge, role_context.toolbox
        )
        trust = TrustState(untrusted, pipeline.steps)
        calls = StepCalls(role_context.toolbox, recorder, hooks.wrapper, trust)
        steering_queue = SteeringQueue(self._inbox, plan.thread_id, self._config.steer)
        async with self._activities.of(plan) as activity:
            driver = TurnDriver(
                pipeline,
                calls,
                role_context.ask,
                activity=activity,
                hooks=hooks,
                steering_queue=steering_queue,
            )
            await driver.run(self._config.turn_timeout)

    async def _begin(
        self,
        recorder: TurnRecorder,
        role_context: RoleContext,
        first: Command,
        continues: str | None,
    ) -> tuple[Step, ...]:
        """Record the turn's start; `first` is the first command of a new turn. Returns the steps
        already recorded.
        """
        models = ", ".join(dict.fromkeys(m.model.name for m in self._models.values()))
        names = role_context.executors.names
        if not isinstance(first, AskRole):
            prompt = role_context.conversation.without(0)
            return await recorder.begin(
                continues=continues, model=models, prompt=prompt, tools=names
            )
        client, system = role_context.prompt_client(first), role_context.system(first)
        system_prompt, prompt = client.first()
        return await recorder.begin(
            continues=continues,
            model=models,
            system_prompt=system_prompt,
            prompt=prompt,
            prompt_id=system.prompt_id,
            components=system.recorded,
            dialect=client.choice.current.name,
            tools=names,
        )

    def _rules(self, plan: TurnPlan) -> PipelineRules:
        config = self._config
        return PipelineRules(self._kind, config.roles, not plan.reply_required, config.max_tokens)

    async def _role_context(
        self, plan: TurnPlan, conversation: ConversationPrompt, reservations: Reservations
    ) -> RoleContext:
        toolbox = self._tools.for_turn()
        agents = await self._agents(plan) if self._kind in ("router", "planner", "pipeline") else ()
        inbox = self._inbox
        opening = self._models[ROLES_OF[self._kind][0]].choice.current
        prompt_builder, ready = self._prompt_builder, self._ready
        context = await prompt_builder.context(plan, toolbox, opening, ready, inbox.threads)
        return RoleContext(
            self._config.roles,
            self._kind,
            self._models,
            toolbox,
            callable_by_plans(toolbox),
            agents,
            conversation,
            await prompt_builder.prompts.awaited(context),
            context,
            plan.thread_id,
            reservations,
            self._prompt_builder.scratchpad,
        )

    async def _agents(self, plan: TurnPlan) -> Sequence[ParticipantSummary]:
        """The agents that can get work, without those waiting for this turn's answer."""
        listed = Participants.model_validate(await self._client.call("list_participants"))
        waiting = {message.sender_id for message in plan.incoming}
        targets = self._config.roles.targets
        return askable_agents(listed.participants, self._inbox.me, targets, waiting)


# Building the backend of a role or a pipeline.


KINDS: Mapping[str, Kind] = {kind: kind for kind in get_args(Kind)}
"""The kinds of agents with roles, by their config names."""


@contextlib.asynccontextmanager
async def role_backend(parts: AgentParts) -> AsyncIterator[tuple[RoleBackend, None]]:
    """The backend of an agent with roles, while the block runs; it does not support trials.

    Raises `ConfigError` when a tool, a model or a prompt file does not exist.
    """
    config, link = parts.config, AgentLink(parts.outbox, parts.inbox)
    more = (AskAgent(link, config.roles.request_timeout), reply_tool(parts.outbox))
    prompt_builder, tools = (
        parts.prompt_builder(parts.prompts()),
        parts.tools(parts.tool_policy, more),
    )
    scratchpad, opened = prompt_builder.scratchpad, dict[str, AgentModel]()
    async with contextlib.AsyncExitStack() as stack:
        for role, label in config.role_models.items():
            of_role = f".models.{role}" if role in config.models else ""
            if label not in opened:
                model = parts.open_model(
                    label, f"agents.{parts.name}{of_role}", scratchpad=scratchpad
                )
                opened[label] = await stack.enter_async_context(model)
        models = {role: opened[label] for role, label in config.role_models.items()}
        yield RoleBackend(parts, models, prompt_builder, link, tools), None
