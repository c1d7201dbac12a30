"""What one turn asks its roles with: each its model, its tool, its system message, its prompt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hubbub.agents.asking import Asker
from hubbub.agents.dialects.choice import DialectChoice
from hubbub.agents.dialects.words import WordDialect
from hubbub.agents.models.base import Answer, Model, OnDelta, ToolSpec
from hubbub.agents.prompt.budget import ContextRules, Fitting, UserMessage
from hubbub.agents.prompt.context import Companion, PromptContext, companions
from hubbub.agents.prompt.examples import native_calls
from hubbub.agents.prompt.system import SystemPrompt, SystemPrompts
from hubbub.agents.roles.answers import judge_spec, plan_spec, route_spec
from hubbub.agents.roles.instructing import role_prompts
from hubbub.agents.roles.pipeline import Consult, Executors, Kind, Pipeline, Rules
from hubbub.agents.roles.telling import RoleMessage
from hubbub.agents.tools.asking_agents import ASK_AGENT
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.tidy import TIDY_STEPS
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.ways_out import ASK_HUMAN, DECLINE, FORK, REPLY, SHOW_PLAN
from hubbub.agents.turn.leasing import Leases, Terms
from hubbub.agents.turn.loop import AskModel
from hubbub.config.roles import RolesConfig
from hubbub.protocol.messages import Card, Participant
from hubbub.protocol.turns import Role, Step

__all__ = ["Desk", "RoleModel", "askable", "callable_by_plans"]

_OWN = frozenset({ASK_AGENT, ASK_HUMAN, DECLINE, FORK, REPLY, SELECT, SHOW_PLAN, TIDY_STEPS})
"""Tools of the runtime, which no plan names."""
_MOST_AGENTS = 100
"""Agents that roles are told of."""


def callable_by_plans(toolbox: Toolbox) -> dict[str, ToolSpec]:
    """The tools that a plan may name, by their names."""
    entries = (e for e in toolbox.registry.entries if e.name not in _OWN and e.absent is None)
    return {entry.name: entry.tool.spec for entry in entries}


def askable(
    participants: Iterable[Participant],
    me: str,
    targets: Collection[str] | None,
    waiting: Collection[str] = (),
) -> Sequence[Companion]:
    """The agents that `me` may give work to: the `targets`, or without any named all that are
    present and have a card. Not those who are `waiting` for its answer themselves.
    """
    chosen = (
        p
        for p in participants
        if p.kind == "agent"
        and p.id not in waiting
        and (p.id in targets if targets is not None else p.present and _has_card(p.card))
    )
    return companions(chosen, me)[:_MOST_AGENTS]


def _has_card(card: Card) -> bool:
    return bool(card.description or card.skills)


@dataclass(frozen=True, slots=True)
class RoleModel:
    """Who answers for a role, in which dialect, what a question may fill, and what it costs."""

    model: Model
    choice: DialectChoice
    context: ContextRules = field(default_factory=ContextRules)
    terms: Terms = field(default_factory=Terms)


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a role may call."""

    specs: tuple[ToolSpec, ...]

    def described(self, steps: Sequence[Step]) -> tuple[ToolSpec, ...]:
        """The same after whatever steps."""
        return self.specs


@dataclass(frozen=True, slots=True)
class Desk:
    """What one turn asks its roles with."""

    config: RolesConfig
    kind: Kind
    models: Mapping[Role, RoleModel]
    toolbox: Toolbox
    specs: Mapping[str, ToolSpec]
    """The tools that a plan may name."""
    agents: Sequence[Companion]
    """The agents that it may name."""
    conversation: UserMessage
    prompts: SystemPrompts
    context: PromptContext
    thread_id: str
    """Canonical."""
    leases: Leases | None = None
    """Those of the turn."""
    scratchpad: bool = False
    """Whether models may think in `<scratchpad>` before they act."""

    async def ask(self, asked: AskModel, hear: OnDelta | None) -> Answer:
        """Ask the role. Nobody hears what is written: it is no message. Raises `ModelError`."""
        assert isinstance(asked, Consult), "nothing else is asked"
        asker = self.asker(asked)
        answer = await asker.ask(asked.wrong, n=asked.n)
        return replace(answer, model=asker.model.name)

    @property
    def executors(self) -> Executors:
        """Who can carry out steps."""
        schemas = {name: spec.parameters for name, spec in self.specs.items()}
        return Executors(schemas, [agent.id for agent in self.agents])

    def asker(self, consult: Consult) -> Asker:
        """What the role is asked with."""
        role, system = self.models[consult.role], self.system(consult)
        message = RoleMessage(self.conversation, tuple(self.specs.values()), self.agents, consult)
        return Asker(
            role.model,
            _Offer(self._offer(consult)[0]),
            system.body,
            message.text,
            role.choice,
            system.closing,
            Fitting(role.context, message, self.toolbox.writing),
            self.leases,
            role.terms,
            self.scratchpad,
        )

    def system(self, consult: Consult) -> SystemPrompt:
        """The role's system message. Raises `ConfigError` when a template of the user fails."""
        specs, tool = self._offer(consult)
        role, names = self.models[consult.role], [spec.name for spec in specs]
        dialect = role.choice.current
        context = replace(
            self.context,
            tools=specs,
            model=role.model.name,
            dialect=dialect.name,
            write_calls=dialect.calls if isinstance(dialect, WordDialect) else native_calls,
        )
        own = self.config.instructions
        prompts = role_prompts(self.prompts, consult.role, self.kind, own, tool, names)
        return prompts.of(context, self.thread_id)

    def _offer(self, consult: Consult) -> tuple[tuple[ToolSpec, ...], str]:
        """What the role may call, and how its instruction speaks of that."""
        finish = (self.toolbox.specs[-1],) if consult.may_finish else ()
        plan = consult.work.plan
        match consult.role:
            case "router":
                spec = route_spec(Pipeline(Rules(self.kind), self.executors).targets)
            case "planner":
                spec = plan_spec(self.executors.names, self.config.max_plan_steps)
            case "reflector":
                spec = judge_spec(self.config.min_score)
            case "executor" if plan is not None and consult.number is not None:
                spec = self.specs[plan.step(consult.number).executor]
            case "executor":
                return (*self.specs.values(), *finish), "one of your tools"
        return (spec, *finish), f"`{spec.name}`"
