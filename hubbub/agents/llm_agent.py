"""An agent with a model, declared in Python with the keys of YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import environ
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from hubbub.agents.output import Output
from hubbub.agents.program import PythonObjects
from hubbub.agents.prompt.builder import PromptBuilder, Render
from hubbub.agents.python.agent import Agent
from hubbub.agents.tools.function import FunctionTool, as_tools
from hubbub.agents.turn.hooks import Hooks
from hubbub.config.agents import (
    AgentConfig,
    Aliases,
    ContextConfig,
    DialectName,
    ForkConfig,
    HistoryConfig,
    ModelConfig,
    ModelSettings,
    Price,
    RolesConfig,
)
from hubbub.config.budgets import DailyBudget
from hubbub.config.explain import valid
from hubbub.config.knowledge import KnowledgeConfig
from hubbub.config.prompting import PromptConfig
from hubbub.config.tooling import PermissionModeName, SandboxLimits, SelectConfig, ToolConfig
from hubbub.errors import ConfigError, UserError
from hubbub.loading import construct, load_attribute
from hubbub.protocol.messages import Card
from hubbub.protocol.turns import Role

__all__ = ["LlmAgent", "ToolLike", "is_agent", "is_object", "resolve_agent", "with_environment"]

Settings = Mapping[str, JsonValue]
ToolLike = object
"""The name of an operation, `file.py:function`, a function, a tool made by `@tool`; or a module or
an object, which stand for all tools marked by `@tool` in them."""


_ENVIRONMENT = {"base_url": "OPENAI_BASE_URL", "api_key": "OPENAI_API_KEY"}
_OBJECT = "python:"


def with_environment(endpoint: Mapping[str, object]) -> dict[str, object]:
    """An endpoint with address and key from the environment, where it has none of its own."""
    usual = {key: environ[name] for key, name in _ENVIRONMENT.items() if environ.get(name)}
    return {**usual, **endpoint}


def is_object(tool: str) -> bool:
    """Whether this entry of a config's `tools` stands for a Python object."""
    return tool.startswith(_OBJECT)


class LlmAgent:
    """An agent with a model: `LlmAgent("clerk", model="gpt-5-mini", instruction="You ...")`.

    Every argument is a key of YAML, of an agent or of its model, with the same meaning and the same
    default. A section may be a mapping or its class. `tools` and `hooks` may also be Python
    objects, `instruction` may be a function of the turn's context, `prompt` a `PromptBuilder`;
    `output` is the type of every answer. `model` is the model's name at its endpoint, or a name in
    the network's `models`, which then defines the rest. Without `base_url` and `api_key` the
    environment's OPENAI_BASE_URL and OPENAI_API_KEY apply.

    Raises `ConfigError` with one sentence that names the wrong argument.
    """

    def __init__(
        self,
        name: str,
        *,
        kind: Literal["llm", "router", "planner", "executor", "reflector", "pipeline"] = "llm",
        card: Card | Settings | None = None,
        instruction: str | Render | None = None,
        prompt: PromptBuilder | PromptConfig | Settings | str | None = None,
        output: type[Any] | None = None,
        # Tools and permissions
        tools: Sequence[ToolLike] | None = None,
        disabled_tools: Sequence[str] | None = None,
        permission_mode: PermissionModeName | None = None,
        tool_settings: Mapping[str, ToolConfig | Settings] | None = None,
        tool_timeout: float | str | None = None,
        result_budget: int | str | None = None,
        select_over: int | None = None,
        select: SelectConfig | Settings | None = None,
        begin_with: str | None = None,
        sandbox: SandboxLimits | Settings | None = None,
        mcp: Sequence[str] | None = None,
        knowledge: KnowledgeConfig | Settings | Sequence[str] | None = None,
        skills: Sequence[str] | None = None,
        fork: ForkConfig | Settings | None = None,
        approvers: Sequence[str] | None = None,
        channels: Sequence[str] | None = None,
        hooks: Sequence[Hooks | str] | None = None,
        # Turns
        mode: Literal["auto", "interactive"] | None = None,
        aliases: Aliases | Settings | None = None,
        final_text: Literal["record", "send"] | None = None,
        max_steps: int | None = None,
        max_tokens: int | str | None = None,
        turn_timeout: float | str | None = None,
        template: str | None = None,
        history: HistoryConfig | Settings | None = None,
        context: ContextConfig | Settings | None = None,
        steer: Literal["steer", "queue", "interrupt"] | None = None,
        debounce: float | str | None = None,
        concurrency: int | None = None,
        ignore_senders: Sequence[str] | None = None,
        greet: str | None = None,
        daily: DailyBudget | Settings | None = None,
        # Agents with several models
        models: Mapping[Role, str] | None = None,
        roles: RolesConfig | Settings | None = None,
        # Model
        model: str = "default",
        base_url: str | None = None,
        api: Literal["chat", "responses"] | None = None,
        api_key: str | None = None,
        context_window: int | str | None = None,
        timeout: float | str | None = None,
        retries: int | None = None,
        stream: bool | None = None,
        tool_choice: Literal["required", "auto"] | None = None,
        strict: bool | None = None,
        structured_output: bool | None = None,
        dialect: DialectName | None = None,
        price: Price | Settings | None = None,
        # Generation
        temperature: float | None = None,
        top_p: float | None = None,
        max_output_tokens: int | str | None = None,
        reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"]
        | None = None,
        service_tier: Literal["auto", "default", "flex", "scale", "priority"] | None = None,
        response_format: Settings | None = None,
        extra_body: Settings | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ):
        given = {key: value for key, value in locals().items() if value is not None}
        for mine in ("self", "name", "model", "output", "tools", "hooks"):
            given.pop(mine, None)
        if callable(instruction):
            del given["instruction"]
        if isinstance(prompt, PromptBuilder):
            del given["prompt"]
        self.name, self._label = name, model
        placed_tools = self._tools(tools or ())
        self.objects = PythonObjects(
            tools={place: tool for place, tool in placed_tools if tool is not None},
            hooks=[hook for hook in hooks or () if not isinstance(hook, str)],
            instruction=instruction if callable(instruction) else None,
            builder=prompt if isinstance(prompt, PromptBuilder) else None,
            output=self._output(output) if output is not None else None,
        )
        agent = {key: value for key, value in given.items() if key in AgentConfig.model_fields}
        agent["hooks"] = [hook for hook in hooks or () if isinstance(hook, str)]
        if model != "default":
            agent["model"] = model
        answering = {k: v for k, v in given.items() if k in ModelSettings.model_fields}
        agent["model_settings"] = valid(ModelSettings, answering, self._place)
        if tools is not None:
            agent["tools"] = [place for place, _ in placed_tools]
        self.config = valid(AgentConfig, agent, self._place)
        own = ModelConfig.model_fields.keys() - ModelSettings.model_fields.keys()
        self._endpoint = {k: v for k, v in given.items() if k in own}
        endpoint = {"model": model, **self._endpoint}
        self._model = valid(ModelConfig, with_environment(endpoint), self._place)

    def __repr__(self) -> str:
        return f"LlmAgent({self.name!r}, model={self._label!r})"

    def joined(self, models: Mapping[str, ModelConfig]) -> tuple[AgentConfig, ModelConfig | None]:
        """Its section in a network with these models, and the model that it adds under its own
        name; None: it uses one of the network's.
        """
        named = self._label in models or (self._label == "default" and bool(self.config.models))
        if named and not self._endpoint:
            return self.config, None
        return self.config.model_copy(update={"model": self.name}), self._model

    def _tools(
        self, given: Sequence[ToolLike]
    ) -> list[tuple[str, FunctionTool[..., object] | None]]:
        """The name of each tool in the config, and the tool itself if it is a Python object."""
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise ConfigError(f"{self._place}: tools: {given!r} is no list: write [{given!r}]")
        placed: list[tuple[str, FunctionTool[..., object] | None]] = []
        for one in given:
            if isinstance(one, str):
                placed.append((one, None))
                continue
            try:
                tools = as_tools(one)
            except TypeError as exc:
                raise ConfigError(f"{self._place}: tools: {exc}") from exc
            if not tools:
                what = f"{self._place}: tools: {one!r} is not a function, and has no `@tool`"
                raise ConfigError(what)
            placed += [(f"{_OBJECT}{tool.name}", tool) for tool in tools]
        return placed

    @property
    def _place(self) -> str:
        return f"LlmAgent({self.name!r})"

    def _output(self, kind: type[Any]) -> Output[Any]:
        try:
            return Output(kind)
        except UserError as exc:
            raise ConfigError(f"{self._place}: {exc}") from exc


# Agents that YAML names as Python objects: `agents.clerk.object: shop.py:clerk`.


@dataclass(frozen=True, slots=True)
class ResolvedAgent:
    """The combined config of an agent's section and its Python object."""

    config: AgentConfig
    objects: PythonObjects = field(default_factory=PythonObjects)
    models: Mapping[str, ModelConfig] = field(default_factory=dict)
    """The network's models and the agent's own."""


def is_agent(value: object) -> bool:
    """Whether it is an agent: an `LlmAgent`, or an `Agent` instance or subclass."""
    return isinstance(value, LlmAgent | Agent) or (
        isinstance(value, type) and issubclass(value, Agent)
    )


def resolve_agent(
    config: AgentConfig, name: str, base_dir: Path, models: Mapping[str, ModelConfig]
) -> ResolvedAgent:
    """Resolve the agent called `name`. Keys of its section override those of its object.

    Raises `ConfigError` if the object does not exist or is no agent.
    """
    if config.object is None:
        return ResolvedAgent(config, models=models)
    agent = load_attribute(config.object, base_dir)
    overrides = {key: getattr(config, key) for key in config.model_fields_set - {"object"}}
    if isinstance(agent, LlmAgent):
        config_of_object, model = agent.joined(models)
        objects = replace(agent.objects, tools={} if "tools" in overrides else agent.objects.tools)
        added = {} if model is None else {agent.name: model}
        return ResolvedAgent(
            config_of_object.model_copy(update=overrides), objects, {**models, **added}
        )
    if isinstance(agent, type) and issubclass(agent, Agent):
        agent = construct(agent)
    if not isinstance(agent, Agent):
        raise ConfigError(f"agents.{name}.object: {config.object} is no LlmAgent or Agent")
    python = AgentConfig(kind="python").model_copy(update=overrides)
    return ResolvedAgent(python, PythonObjects(agent=agent), models)
