"""An agent that is a role, or a pipeline of them: from its YAML to the turns that it takes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import get_args

from hubbub.agents.asking import DialectChoice
from hubbub.agents.brain import Brain
from hubbub.agents.briefing import Briefing, shows_outside
from hubbub.agents.inbox import TurnPlan
from hubbub.agents.models.providers import open_model
from hubbub.agents.parts import Parts
from hubbub.agents.prompt.context import Companion
from hubbub.agents.prompt.render import Conversation
from hubbub.agents.prompt.scratchpad import ThinkingModel
from hubbub.agents.python.link import Link
from hubbub.agents.roles.desk import Desk, RoleModel, askable, callable_by_plans
from hubbub.agents.roles.pipeline import Consult, Kind, Pipeline, Rules
from hubbub.agents.roles.work import Bounds
from hubbub.agents.tools.asking_agents import AskAgent
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.ways_out import replying
from hubbub.agents.turn.activity import Activities
from hubbub.agents.turn.driver import Calls, Helm, Taint, TurnDriver
from hubbub.agents.turn.hooks import HookChain
from hubbub.agents.turn.journal import Journal
from hubbub.agents.turn.loop import Command
from hubbub.agents.turn.reservations import Reservations, Terms
from hubbub.agents.turn.waiting import earlier_steps
from hubbub.agents.window import context_rules
from hubbub.config.agents import ROLES_OF, AgentConfig, ModelConfig
from hubbub.config.problems import nearest
from hubbub.errors import ConfigError
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Participants
from hubbub.protocol.turns import Role, Step

__all__ = ["KINDS", "RoleBrain", "role_brain"]


class RoleBrain(Brain):
    """Takes turns as the agent's kind says. `models` has one for each role that the kind needs."""

    def __init__(
        self,
        parts: Parts,
        models: Mapping[Role, RoleModel],
        briefing: Briefing,
        link: Link,
        tools: Callable[[Ready], Toolbox],
    ):
        """`tools` makes the toolbox from what the hub offers; it is called for every connection."""
        self._kind = KINDS[parts.config.kind]
        self._client, self._inbox, self._config = parts.client, parts.inbox, parts.config
        self._hear = parts.program.heard if parts.program is not None else None
        self._models, self._template, self._link = models, parts.template, link
        self._briefing, self._ready = briefing, parts.client.ready
        self._make_tools, self._tools, self._hooks = tools, tools(self._ready), parts.hooks
        self._activities = Activities(partial(parts.client.signal, "activity"))
        self._first = True

    async def ready(self, ready: Ready) -> None:
        self._ready, self._tools = ready, self._make_tools(ready)
        await self._activities.repeat()
        if self._first or not ready.resumed:  # later, turns that have begun are our own
            self._first = False
            self._link.take_up({p.started for p in ready.pending if p.started is not None})

    def claims(self, message: Message) -> asyncio.Future[bool] | None:
        return self._link.claim(message)

    async def dropped(self, turn: str) -> None:
        await self._activities.drop(turn)

    async def take_turn(self, plan: TurnPlan, journal: Journal) -> None:
        try:
            await self._take_turn(await journal.take_up(), journal)
        finally:
            self._link.turn_over(plan.id)

    async def _take_turn(self, plan: TurnPlan, journal: Journal) -> None:
        thread, me = self._inbox.thread(plan.thread_id), self._inbox.me
        earlier = await earlier_steps(thread, plan, me, journal.other)
        history = self._config.history
        conversation = Conversation.of(self._template, self._inbox.threads, plan, me, history)
        desk = await self._desk(plan, conversation, journal.reservations)
        first = Pipeline(self._rules(plan), desk.executors, (), earlier.steps).start()[0]
        steps = await self._begin(journal, desk, first, earlier.turn)
        pipeline = Pipeline(self._rules(plan), desk.executors, steps, earlier.steps)
        hooks = HookChain(self._hooks, plan, me, hear=self._hear)
        journal.before_end = hooks.turn_ended
        knows = bool(desk.context.knowledge)
        untrusted = shows_outside(conversation.in_thread, knows, desk.toolbox)
        taint = Taint(untrusted, pipeline.steps)
        calls = Calls(desk.toolbox, journal, hooks.wraps, taint)
        helm = Helm(self._inbox, plan.thread_id, self._config.steer)
        async with self._activities.of(plan) as activity:
            driver = TurnDriver(
                pipeline, calls, desk.ask, activity=activity, hooks=hooks, helm=helm
            )
            await driver.run(self._config.turn_timeout)

    async def _begin(
        self, journal: Journal, desk: Desk, first: Command, continues: str | None
    ) -> tuple[Step, ...]:
        """The turn begins, if it is a new one with this command. The steps that it has already."""
        models = ", ".join(dict.fromkeys(m.model.name for m in self._models.values()))
        names = desk.executors.names
        if not isinstance(first, Consult):
            prompt = desk.conversation.without(0)
            return await journal.begin(
                continues=continues, model=models, prompt=prompt, tools=names
            )
        asker, system = desk.asker(first), desk.system(first)
        system_prompt, prompt = asker.first()
        return await journal.begin(
            continues=continues,
            model=models,
            system_prompt=system_prompt,
            prompt=prompt,
            prompt_id=system.prompt_id,
            components=system.recorded,
            dialect=asker.choice.current.name,
            tools=names,
        )

    def _rules(self, plan: TurnPlan) -> Rules:
        roles = self._config.roles
        bounds = Bounds(
            roles.min_confidence,
            roles.min_score,
            roles.criteria,
            roles.judge_simple,
            roles.max_plan_steps,
            roles.max_retries,
        )
        return Rules(self._kind, bounds, not plan.reply_required, self._config.max_tokens)

    async def _desk(
        self, plan: TurnPlan, conversation: Conversation, reservations: Reservations
    ) -> Desk:
        toolbox = self._tools.for_turn()
        agents = await self._agents(plan) if self._kind in ("router", "planner", "pipeline") else ()
        inbox = self._inbox
        opening = self._models[ROLES_OF[self._kind][0]].choice.current
        briefing, ready = self._briefing, self._ready
        context = await briefing.context(plan, toolbox, opening, ready, inbox.threads)
        return Desk(
            self._config.roles,
            self._kind,
            self._models,
            toolbox,
            callable_by_plans(toolbox),
            agents,
            conversation,
            await briefing.prompts.awaited(context),
            context,
            plan.thread_id,
            reservations,
            self._briefing.scratchpad,
        )

    async def _agents(self, plan: TurnPlan) -> Sequence[Companion]:
        """The agents that may be given work: not those that wait for this turn's answer."""
        listed = Participants.model_validate(await self._client.call("list_participants"))
        waiting = {message.sender_id for message in plan.incoming}
        targets = self._config.roles.targets
        return askable(listed.participants, self._inbox.me, targets, waiting)


# From the YAML of a role or a pipeline to its brain.


KINDS: Mapping[str, Kind] = {kind: kind for kind in get_args(Kind)}
"""The kinds of agents that have roles, by what a config calls them."""


@contextlib.asynccontextmanager
async def role_brain(parts: Parts) -> AsyncIterator[tuple[RoleBrain, None]]:
    """The brain of an agent of one of the kinds with roles, for as long as the block runs; it
    takes no turns for trial.

    Raises `ConfigError` when a tool, a model or a file of its prompt does not exist.
    """
    config, link = parts.config, Link(parts.voice, parts.inbox)
    more = (AskAgent(link, config.roles.request_timeout), replying(parts.voice))
    briefing, tools = parts.briefing(parts.prompts()), parts.tools(parts.conduct, more)
    async with _role_models(config, parts.name, parts.models, briefing.scratchpad) as models:
        yield RoleBrain(parts, models, briefing, link, tools), None


@contextlib.asynccontextmanager
async def _role_models(
    config: AgentConfig, name: str, models: Mapping[str, ModelConfig], scratchpad: bool
) -> AsyncIterator[dict[Role, RoleModel]]:
    chosen = config.role_models
    for role, model in chosen.items():
        if model not in models:
            where = f"agents.{name}.models.{role}" if role in config.models else f"agents.{name}"
            hint = nearest(model, models) or "; add it to `models`"
            raise ConfigError(f"{where}: there is no model {model!r}{hint}")
    async with contextlib.AsyncExitStack() as stack:
        made: dict[str, RoleModel] = {}
        for model in dict.fromkeys(chosen.values()):
            settled = models[model].with_settings(config.model_settings)
            endpoint = open_model(settled, model)
            stack.push_async_callback(endpoint.close)
            rules = await context_rules(config.model_copy(update={"model": model}), name, settled)
            answers = ThinkingModel(endpoint) if scratchpad else endpoint
            terms = Terms.of(settled, rules.reserve)
            made[model] = RoleModel(
                answers, DialectChoice(settled, aliases=config.aliases), rules, terms
            )
        yield {role: made[model] for role, model in chosen.items()}
