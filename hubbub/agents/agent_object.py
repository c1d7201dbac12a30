"""Agents that YAML names as Python objects: `agents.clerk.object: shop.py:clerk`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hubbub.agents.llm_agent import LlmAgent
from hubbub.agents.program import PythonObjects
from hubbub.agents.python.agent import Agent
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.errors import ConfigError
from hubbub.loading import construct, load_attribute

__all__ = ["ResolvedAgent", "is_agent", "resolve_agent"]


@dataclass(frozen=True, slots=True)
class ResolvedAgent:
    """The combined config of an agent's section and its Python object."""

    config: AgentConfig
    objects: PythonObjects = field(default_factory=PythonObjects)
    models: Mapping[str, ModelConfig] = field(default_factory=dict)
    """The network's models and the agent's own."""


def is_agent(found: object) -> bool:
    """Whether it is an agent: an `LlmAgent`, or an `Agent` instance or subclass."""
    return isinstance(found, LlmAgent | Agent) or (
        isinstance(found, type) and issubclass(found, Agent)
    )


def resolve_agent(
    config: AgentConfig, name: str, base_dir: Path, models: Mapping[str, ModelConfig]
) -> ResolvedAgent:
    """Resolve the agent called `name`. Keys of its section override those of its object.

    Raises `ConfigError` if the object does not exist or is no agent.
    """
    if config.object is None:
        return ResolvedAgent(config, models=models)
    found = load_attribute(config.object, base_dir)
    overrides = {key: getattr(config, key) for key in config.model_fields_set - {"object"}}
    if isinstance(found, LlmAgent):
        config_of_object, model = found.joined(models)
        objects = replace(found.objects, tools={} if "tools" in overrides else found.objects.tools)
        added = {} if model is None else {found.name: model}
        return ResolvedAgent(
            config_of_object.model_copy(update=overrides), objects, {**models, **added}
        )
    if isinstance(found, type) and issubclass(found, Agent):
        found = construct(found)
    if not isinstance(found, Agent):
        raise ConfigError(f"agents.{name}.object: {config.object} is no LlmAgent or Agent")
    python = AgentConfig(kind="python").model_copy(update=overrides)
    return ResolvedAgent(python, PythonObjects(agent=found), models)
