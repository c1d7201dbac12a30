"""Previews of prompts: the system message at the start of a turn with a person.

Identical to that of a real turn, including the described tools and the dialect's instructions. For
an agent with roles, one preview per role. Runs nothing, and sends no requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hubbub.agents.models.base import Completion, CompletionRequest, OnDelta, ToolSpec
from hubbub.agents.parts import AgentModel
from hubbub.agents.prompt.budget import ContextBudget, FixedMessage
from hubbub.agents.prompt.system import SystemPrompt
from hubbub.agents.prompt.tokens import counter_for, spec_tokens
from hubbub.agents.prompt_client import (
    DialectChoice,
    EndpointLimits,
    PromptClient,
    first_tool,
    initial_tools,
)
from hubbub.agents.roles.backend import KINDS
from hubbub.agents.roles.context import RoleContext, askable_agents, callable_by_plans
from hubbub.agents.roles.pipeline import AskRole
from hubbub.agents.roles.plan import Plan, PlanStep
from hubbub.agents.roles.state import ONLY, WorkState
from hubbub.app.prompts import AgentPrompt
from hubbub.config.agents import ROLES_OF, ModelConfig
from hubbub.protocol.turns import Role

__all__ = ["PromptPreview", "previews"]


@dataclass(frozen=True, slots=True)
class PromptPreview:
    """A system message, as a model reads it."""

    prompt: SystemPrompt
    text: str
    """The whole message."""
    role: Role | None = None
    tool: str | None = None
    """The example tool of a plan's executor, which reads only about its step's tool."""
    tools: tuple[ToolSpec, ...] = ()
    """The initial tools in the request; empty if the text describes them."""

    @property
    def tokens(self) -> dict[str, int]:
        """Tokens of each component and of `tools`, by OpenAI's vocabulary o200k_base."""
        counter = counter_for("gpt-4o")
        named = zip(self.prompt.components, self.prompt.texts, strict=True)
        parts = {name.removeprefix("role:"): counter.count(text) for name, text in named}
        return {**parts, "tools": sum(spec_tokens(counter, tool) for tool in self.tools)}


def previews(prompt: AgentPrompt) -> tuple[PromptPreview, ...]:
    """The preview of an agent's model, or of each of its roles.

    Raises `ConfigError` if a user's template fails.
    """
    return tuple(
        _role_previews(prompt) if prompt.config.kind in KINDS else [_model_preview(prompt)]
    )


def _model_preview(prompt: AgentPrompt) -> PromptPreview:
    thread, toolbox, config = prompt.thread(), prompt.toolbox, prompt.config
    context = prompt.context(thread)
    system = prompt.awaited(context).of(context, thread)
    model = _model(prompt, config.model)
    offers = initial_tools(toolbox, first_tool(toolbox, config.begin_with))
    empty = ContextBudget(model.context, FixedMessage(""))
    client = PromptClient(
        model.model,
        offers,
        system.body,
        empty,
        model.choice,
        system.closing,
        contract=system.contract,
    )
    return PromptPreview(system, client.first()[0], tools=_tools(client))


def _role_previews(prompt: AgentPrompt) -> Iterator[PromptPreview]:
    context = _role_context(prompt)
    for role in ROLES_OF[prompt.config.kind]:
        consult = _consult(context, role)
        if consult is not None:
            plan = consult.work.plan
            tool = plan.step(ONLY).executor if plan is not None else None
            client = context.prompt_client(consult)
            yield PromptPreview(
                context.system(consult), client.first()[0], role, tool, _tools(client)
            )


def _tools(client: PromptClient) -> tuple[ToolSpec, ...]:
    """The tools in the first request."""
    return tuple(client.question((), client.choice.current).tools)


def _role_context(prompt: AgentPrompt) -> RoleContext:
    """The context in which a turn of the agent consults its roles."""
    config, toolbox, thread = prompt.config, prompt.toolbox, prompt.thread()
    context = prompt.context(thread)
    targets = config.roles.targets
    hands_on = config.kind in ("router", "planner", "pipeline")
    return RoleContext(
        config.roles,
        KINDS[config.kind],
        {role: _model(prompt, name) for role, name in config.role_models.items()},
        toolbox,
        callable_by_plans(toolbox),
        askable_agents(prompt.ready.participants, prompt.name, targets) if hands_on else (),
        FixedMessage(""),
        prompt.awaited(context),
        context,
        thread,
    )


def _consult(context: RoleContext, role: Role) -> AskRole | None:
    """The first request to the role; None for an executor without any tool to call."""
    if role != "executor" or context.kind == "executor":
        return AskRole(1, role, WorkState())
    tool = next(iter(context.specs), None)
    if tool is None:
        return None
    plan = Plan(steps=(PlanStep(id=ONLY, goal=tool, executor=tool),))
    return AskRole(1, role, WorkState(plan=plan), ONLY)


def _model(prompt: AgentPrompt, name: str) -> AgentModel:
    """A placeholder with the name, and the initial dialect, of a model in the config."""
    config: ModelConfig | None = prompt.loaded.file.models.get(name)
    choice = DialectChoice(config, EndpointLimits()) if config is not None else DialectChoice()
    return AgentModel(_UnreachableModel(config.model if config is not None else name), choice)


@dataclass(frozen=True, slots=True)
class _UnreachableModel:
    """A placeholder for a model, which must not be called."""

    name: str

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        raise RuntimeError(f"{self.name} is not asked {question} here ({on_delta})")

    async def close(self) -> None:
        """Does nothing."""
