"""An agent that is a role, or a pipeline of them: carries out what `Pipeline` commands."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from hubbub.agents.activity import Activities, Activity
from hubbub.agents.asking import Asker
from hubbub.agents.dialects.choice import DialectChoice
from hubbub.agents.hooks import HookChain, Hooks
from hubbub.agents.inbox import Inbox, TurnPlan
from hubbub.agents.journal import Journal
from hubbub.agents.link import Link
from hubbub.agents.loop import End, Record, RunTools
from hubbub.agents.models.base import Model, ToolSpec
from hubbub.agents.prompt.context import Companion, PromptContext, companions
from hubbub.agents.prompt.render import ConversationTemplate, render_conversation
from hubbub.agents.roles.answers import judge_spec, plan_spec, route_spec
from hubbub.agents.roles.pipeline import (
    Answered,
    Command,
    Consult,
    Executors,
    Kind,
    Pipeline,
    Rules,
)
from hubbub.agents.roles.telling import prompt_of, system_of, told_executors
from hubbub.agents.roles.work import Bounds, Role
from hubbub.agents.tools.asking_agents import ASK_AGENT
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.tidy import TIDY_STEPS
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.ways_out import ASK_HUMAN, DECLINE, FORK, REPLY, SHOW_PLAN
from hubbub.agents.waiting import Earlier, earlier_steps, waits
from hubbub.client import Client
from hubbub.config.agents import AgentConfig
from hubbub.errors import ModelError
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Card, Message
from hubbub.protocol.operations import Participants
from hubbub.protocol.turns import Step

__all__ = ["RoleBrain", "RoleModel"]

_OWN = frozenset({ASK_AGENT, ASK_HUMAN, DECLINE, FORK, REPLY, SELECT, SHOW_PLAN, TIDY_STEPS})
"""Tools of the runtime, which no plan names."""
MOST_AGENTS = 100
"""Agents that roles are told of."""


@dataclass(frozen=True, slots=True)
class RoleModel:
    """Who answers for a role, and in which dialect."""

    model: Model
    choice: DialectChoice


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a role may call."""

    specs: tuple[ToolSpec, ...]

    def described(self, steps: Sequence[Step]) -> tuple[ToolSpec, ...]:
        """The same after whatever steps."""
        return self.specs


class RoleBrain:
    """Takes turns as the agent's kind says. `models` has one for each role that the kind needs."""

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        config: AgentConfig,
        kind: Kind,
        models: Mapping[Role, RoleModel],
        template: ConversationTemplate,
        link: Link,
        tools: Callable[[Ready], Toolbox],
        hooks: Sequence[Hooks] = (),
    ):
        """`tools` makes the toolbox from what the hub offers; it is called for every connection."""
        self._client, self._inbox, self._config, self._kind = client, inbox, config, kind
        self._models, self._template, self._link = models, template, link
        self._make_tools, self._tools, self._hooks = tools, tools(client.ready), hooks
        self._activities = Activities(partial(client.signal, "activity"))
        self._first = True

    async def ready(self, ready: Ready) -> None:
        self._tools = self._make_tools(ready)
        await self._activities.repeat()
        if self._first or not ready.resumed:  # later, turns that have begun are our own
            self._first = False
            self._link.take_up({p.started for p in ready.pending if p.started is not None})

    def claims(self, message: Message) -> asyncio.Future[bool] | None:
        return self._link.claim(message)

    def observes(self, message: Message) -> bool:
        return False

    async def observe(self, message: Message) -> None:
        """What does not wake the agent stands in its next prompt."""

    async def start(self) -> None:
        """There is nothing to do before something wakes it."""

    async def take_turn(self, plan: TurnPlan, journal: Journal) -> None:
        try:
            await self._take_turn(await journal.take_up(), journal)
        finally:
            self._link.turn_over(plan.id)

    async def _take_turn(self, plan: TurnPlan, journal: Journal) -> None:
        thread, me = self._inbox.thread(plan.thread_id), self._inbox.me
        earlier = await earlier_steps(thread, plan, me, journal.other)
        desk = await self._desk(plan)
        first = Pipeline(self._rules(plan), desk.executors, (), earlier.steps).start()[0]
        opening = desk.asker(first) if isinstance(first, Consult) else None
        steps = await journal.begin(
            model=", ".join(dict.fromkeys(m.model.name for m in self._models.values())),
            system_prompt=opening.opening if opening else None,
            prompt=opening.prompt if opening else desk.conversation,
            dialect=opening.choice.current.name if opening else None,
            tools=desk.executors.names,
        )
        pipeline = Pipeline(self._rules(plan), desk.executors, steps, earlier.steps)
        hooks = HookChain(self._hooks, plan, me)
        journal.before_end = hooks.turn_ended
        async with self._activities.of(plan) as activity:
            turn = _Turn(desk, pipeline, journal, activity, hooks, earlier)
            await turn.run(self._config.turn_timeout)

    def _rules(self, plan: TurnPlan) -> Rules:
        roles = self._config.roles
        bounds = Bounds(roles.min_confidence, roles.max_plan_steps, roles.max_retries)
        return Rules(self._kind, bounds, may_finish=not plan.reply_required)

    async def _desk(self, plan: TurnPlan) -> _Desk:
        toolbox = self._tools.for_turn()
        agents = await self._agents(plan) if self._kind in ("router", "planner", "pipeline") else ()
        conversation = render_conversation(
            self._template, self._inbox.threads, plan, self._inbox.me, self._config.history
        )
        entries = (e for e in toolbox.registry.entries if e.name not in _OWN and e.absent is None)
        specs = {entry.name: entry.tool.spec for entry in entries}
        return _Desk(
            self._config, self._kind, self._models, toolbox, specs, agents, conversation,
            self._context(plan),
        )  # fmt: skip

    def _context(self, plan: TurnPlan) -> PromptContext:
        me, shown = self._inbox.me, islice(self._inbox.threads, self._config.history.threads)
        return PromptContext(
            agent=me,
            network=self._client.network,
            instruction=self._config.instruction,
            thread=thread_ids.relative(plan.thread_id, me),
            threads=[thread_ids.relative(thread.id, me) for thread in shown],
        )

    async def _agents(self, plan: TurnPlan) -> Sequence[Companion]:
        """The agents that may be given work: not those that wait for this turn's answer."""
        listed = Participants.model_validate(await self._client.call("list_participants"))
        targets = self._config.roles.targets
        waiting = {message.sender_id for message in plan.incoming}
        chosen = (
            p
            for p in listed.participants
            if p.kind == "agent"
            and p.id not in waiting
            and (p.id in targets if targets is not None else p.present and _has_card(p.card))
        )
        return companions(chosen, self._inbox.me)[:MOST_AGENTS]


def _has_card(card: Card) -> bool:
    return bool(card.description or card.skills)


@dataclass(frozen=True, slots=True)
class _Desk:
    """What one turn asks its roles with."""

    config: AgentConfig
    kind: Kind
    models: Mapping[Role, RoleModel]
    toolbox: Toolbox
    specs: Mapping[str, ToolSpec]
    agents: Sequence[Companion]
    conversation: str
    context: PromptContext

    @property
    def executors(self) -> Executors:
        schemas = {name: spec.parameters for name, spec in self.specs.items()}
        return Executors(schemas, [agent.id for agent in self.agents])

    def asker(self, consult: Consult) -> Asker:
        """What the role is asked with."""
        offer, tool = self._offer(consult)
        role = self.models[consult.role]
        system = system_of(
            consult.role, self.kind, self.config.roles.instructions, self.context, tool
        )
        told = told_executors(self.specs.values(), self.agents)
        prompt = prompt_of(self.conversation, told, consult)
        return Asker(role.model, _Offer(offer), system, prompt, role.choice)

    def _offer(self, consult: Consult) -> tuple[tuple[ToolSpec, ...], str]:
        """What the role may call, and how its instruction speaks of that."""
        finish = (self.toolbox.specs[-1],) if consult.may_finish else ()
        plan = consult.work.plan
        match consult.role:
            case "router":
                spec = route_spec(Pipeline(Rules(self.kind), self.executors).targets)
            case "planner":
                spec = plan_spec(self.executors.names, self.config.roles.max_plan_steps)
            case "reflector":
                spec = judge_spec()
            case "executor" if plan is not None and consult.number is not None:
                spec = self.specs[plan.step(consult.number).executor]
            case "executor":
                return (*self.specs.values(), *finish), "one of your tools"
        return (spec, *finish), f"`{spec.name}`"


@dataclass(slots=True)
class _Turn:
    """One turn under way."""

    desk: _Desk
    pipeline: Pipeline
    journal: Journal
    activity: Activity
    hooks: HookChain
    earlier: Earlier

    async def run(self, within: float) -> None:
        try:
            async with asyncio.timeout(within) as limit:
                await self.hooks.turn_started()
                await self._carry_out(self.pipeline.start())
        except TimeoutError:
            if not limit.expired():
                raise  # of something within, which should have said more
            await self._carry_out(
                self.pipeline.stopped("timeout", f"not finished after {within:g} s")
            )

    async def _carry_out(self, commands: Sequence[Command]) -> None:
        todo = deque(commands)
        while todo:
            match todo.popleft():
                case Record(step):
                    self.journal.step(self.earlier.noted(step))
                case Consult() as consult:
                    several = [consult, *(c for c in todo if isinstance(c, Consult))]
                    todo = deque(await self._consult(several))
                case RunTools() as run:
                    todo.extend(await self._run_tools(run))
                case End(outcome, reason, text):
                    await self.journal.end(outcome, reason, text)
                    if waits(reason):  # the next turn reads this one's record
                        await self.journal.durable()

    async def _consult(self, consults: Sequence[Consult]) -> list[Command]:
        """Ask several roles side by side."""
        await self.activity.show("thinking", consults[0].n)
        failed: str | None = None
        try:
            async with asyncio.TaskGroup() as group:
                asking = [group.create_task(self._ask(consult)) for consult in consults]
        except* ModelError as errors:
            failed = str(errors.exceptions[0])
        if failed is not None:
            return self.pipeline.stopped("model_error", failed)
        return self.pipeline.answered([task.result() for task in asking])

    async def _ask(self, consult: Consult) -> Answered:
        clock = self.journal.clock
        at = clock.ms
        asker = self.desk.asker(consult)
        answer = await asker.ask(consult.wrong)
        notes = (f"model: {asker.model.name}", *self.desk.toolbox.news(), *answer.notes)
        answer = replace(answer, notes=notes)
        return Answered(consult, answer, at, clock.since(at))

    async def _run_tools(self, run: RunTools) -> list[Command]:
        toolbox, step = self.desk.toolbox, run.step
        if toolbox.must_be_recorded(run.calls):
            await self.journal.durable()
        await self.activity.show("calling", step.n, [call.name for call in run.calls])
        results = await toolbox.run(
            self.journal.plan.id,
            step.n,
            step.calls,
            run.calls,
            again=run.again,
            clock=self.journal.clock,
            thread_id=self.journal.plan.thread_id,
            around=self.hooks.around if self.hooks else None,
        )
        return self.pipeline.ran(results, self.hooks.notes())
