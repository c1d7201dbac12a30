"""A network with one thing changed: what would have come of it?"""

from __future__ import annotations

from dataclasses import replace

from pydantic import JsonValue

from hubbub.config.explain import valid
from hubbub.config.loader import LoadedConfig
from hubbub.config.models import AgentConfig
from hubbub.config.problems import nearest
from hubbub.errors import UserError

__all__ = ["with_change", "with_model"]


def with_model(loaded: LoadedConfig, model: str) -> LoadedConfig:
    """The network whose agents all have this model."""
    agents = {
        name: loaded.file.agent(name).model_copy(update={"model": model, "models": {}})
        for name in loaded.file.agents
    }
    return replace(loaded, file=loaded.file.model_copy(update={"agents": agents}))


def with_change(loaded: LoadedConfig, agent: str, key: str, value: JsonValue) -> LoadedConfig:
    """The network with another value for a key of an agent. Raises `UserError`."""
    agents = loaded.file.agents
    if agent not in agents:
        raise UserError(f"there is no agent '{agent}'{nearest(agent, agents)}")
    given = agents[agent].model_dump(mode="json", by_alias=True, exclude_unset=True)
    if key == "instruction":
        given.pop("prompt", None)
    changed = valid(AgentConfig, {**given, key: value}, f"agents.{agent}")
    file = loaded.file.model_copy(update={"agents": {**agents, agent: changed}})
    return replace(loaded, file=file)
