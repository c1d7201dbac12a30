"""The parts that every agent with models is assembled from, whatever its kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from hubbub.agents.inbox import Inbox
from hubbub.agents.models.base import ChatModel
from hubbub.agents.models.providers import open_model
from hubbub.agents.program import AgentProgram, PythonObjects
from hubbub.agents.prompt.budget import ContextRules
from hubbub.agents.prompt.context import Note
from hubbub.agents.prompt.render import ConversationTemplate
from hubbub.agents.prompt.scratchpad import ThinkingModel
from hubbub.agents.prompt.system import SystemPrompts, load_system_prompts
from hubbub.agents.prompt.tokens import counter_for
from hubbub.agents.prompt_client import DialectChoice
from hubbub.agents.system_prompt import Memory, SystemPromptBuilder
from hubbub.agents.tools.assembly import ToolKit
from hubbub.agents.tools.base import Tool, ToolSource
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.tool_chooser import ToolChooser
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.hooks import Hooks
from hubbub.agents.turn.outbox import Outbox
from hubbub.agents.turn.reservations import CostModel
from hubbub.client import Client
from hubbub.config.agents import AgentConfig, ModelConfig
from hubbub.config.problems import nearest
from hubbub.errors import ConfigError
from hubbub.protocol.frames import Ready

__all__ = ["AgentModel", "AgentParts", "context_rules", "window_size", "with_token_budget"]


# From an agent's config to the rules that keep its prompts within the model's context window.


DEFAULT_RESERVE = 4096
"""Tokens reserved for the completion, where the window is large enough."""
_RESULTS = 8
"""A single result may fill at most one in this many parts of the prompt's budget."""


def window_size(config: AgentConfig, model: ModelConfig) -> tuple[int, int] | None:
    """The agent's window and the tokens reserved in it for the completion; None: not known."""
    context = config.context
    sizes = [size for size in (context.window, model.context_window) if size is not None]
    if not sizes:
        return None
    size = min(sizes)
    if context.reserve is not None:
        return size, context.reserve
    return size, min(model.max_output_tokens or DEFAULT_RESERVE, size // 4)


async def context_rules(config: AgentConfig, name: str, model: ModelConfig) -> ContextRules:
    """The rules for the agent `name`. Loads a vocabulary in a thread if the model's is known.

    Raises `ConfigError` when the reserve leaves no room in the window.
    """
    context = config.context
    window, protect = window_size(config, model), frozenset(context.protect)
    if window is None:
        return ContextRules(
            compression=context.compression, keep_steps=context.keep_steps, protect=protect
        )
    size, reserve = window
    if reserve >= size:
        what = f"{reserve} tokens reserved for the answer leave nothing of a window of {size}"
        raise ConfigError(f"agents.{name}.context.reserve: {what}")
    own = context.window is not None and size == context.window
    key = f"agents.{name}.context.window" if own else f"models.{config.model}.context_window"
    return ContextRules(
        size=size,
        reserve=reserve,
        compression=context.compression,
        keep_steps=context.keep_steps,
        protect=protect,
        counter=await asyncio.to_thread(counter_for, model.model),
        advice=f"raise {key} if the model has more",
    )


def with_token_budget(tool_policy: ToolPolicy, rules: ContextRules) -> ToolPolicy:
    """The policy with results counted by the model's tokens and bounded by its window."""
    if rules.room is None:
        return tool_policy
    most = max(rules.room // _RESULTS, 1)
    return replace(tool_policy, counter=rules.counter, budget=min(tool_policy.budget, most))


@dataclass(frozen=True, slots=True)
class AgentModel:
    """A model as an agent asks it: in which dialect, within which limits, and at which price."""

    model: ChatModel
    choice: DialectChoice
    context: ContextRules = field(default_factory=ContextRules)
    cost_model: CostModel = field(default_factory=CostModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """Made once per agent, from its config and its connection."""

    config: AgentConfig
    name: str
    base_dir: Path
    """Relative paths in the config are relative to it."""
    models: Mapping[str, ModelConfig]
    client: Client
    inbox: Inbox
    outbox: Outbox
    memory: Memory
    template: ConversationTemplate
    tool_policy: ToolPolicy
    source: ToolSource | None = None
    """Tools that come and go."""
    hooks: Sequence[Hooks] = ()
    mods: Sequence[Note] = ()
    """Descriptions of the hub's mods, for prompts."""
    objects: PythonObjects = field(default_factory=PythonObjects)
    program: AgentProgram | None = None
    chooser: ToolChooser | None = None
    """Chooses among many tools."""

    @asynccontextmanager
    async def open_model(
        self, label: str, key: str, *, scratchpad: bool
    ) -> AsyncIterator[AgentModel]:
        """The model with this name in `models`, while the block runs. `key` is where the config
        names it, `scratchpad` whether it may think in `<scratchpad>`.

        Raises `ConfigError` when there is none, or its window leaves no room for a question.
        """
        if label not in self.models:
            hint = nearest(label, self.models) or "; add it to `models`"
            raise ConfigError(f"{key}: there is no model {label!r}{hint}")
        config = self.config.model_copy(update={"model": label})
        settings = self.models[label].with_settings(config.model_settings)
        speaks = config.kind == "llm" and config.final_text == "send"
        if speaks and "tool_choice" not in settings.model_fields_set:
            settings = settings.model_copy(update={"tool_choice": "auto"})
        rules = await context_rules(config, self.name, settings)
        model = open_model(settings, label)
        try:
            yield AgentModel(
                ThinkingModel(model) if scratchpad else model,
                DialectChoice(settings, aliases=config.aliases),
                rules,
                CostModel.of(settings, rules.reserve),
            )
        finally:
            await model.close()

    def prompts(self) -> SystemPrompts:
        """The agent's system prompts. Raises `ConfigError`."""
        own = self.objects
        return load_system_prompts(
            self.config, self.name, self.base_dir, own.builder, own.instruction
        )

    def prompt_builder(self, prompts: SystemPrompts, model: str = "") -> SystemPromptBuilder:
        network, memory = self.client.network, self.memory
        return SystemPromptBuilder(
            prompts, self.config, network, model, mods=self.mods, memory=memory
        )

    def tools(
        self, tool_policy: ToolPolicy, more: Sequence[Tool] = (), operator_text: str = ""
    ) -> Callable[[Ready], Toolbox]:
        """A function that makes the toolbox from what the hub offers. `more` and `words` as for
        `ToolKit`.

        Raises `ConfigError` for a wrong name, before the model's library is imported.
        """
        kit = ToolKit(
            self.config,
            self.name,
            self.base_dir,
            tool_policy=tool_policy,
            source=self.source,
            more=more,
            operator_text=operator_text,
            own=self.objects.tools,
        )

        def toolbox(ready: Ready) -> Toolbox:
            return kit.toolbox(ready, self.memory)

        toolbox(self.client.ready)
        return toolbox
