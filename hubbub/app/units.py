"""The processes of a network's agents and bridges, as the supervisor runs them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hubbub.app.lifeline import RUN, TOKENS, URL
from hubbub.config.agents import ROLES_OF
from hubbub.config.loader import LoadedConfig

__all__ = ["Unit", "modules", "unit", "units"]

_AGENTS = ("uvloop", "websockets.asyncio.client", "hubbub.app.agents")
"""What each agent's process imports, late or not."""
_MODELS = (
    *_AGENTS,
    "openai",
    "hubbub.agents.model_backend",
    "hubbub.agents.models.openai",
    "hubbub.agents.tools.validation",
    "hubbub.app.prompts",
)
"""What it imports for an agent with a model."""


@dataclass(frozen=True)
class Unit:
    """A process to supervise: of one agent, or of several that share it."""

    agents: tuple[str, ...]
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to this process's own."""
    arguments: Sequence[str] = ()
    """Of `hubbub.cli.agent_process`, if the command runs that: a fork can run it, too."""


def units(config: LoadedConfig, url: str, tokens: Mapping[str, str], run: str) -> list[Unit]:
    """One process per agent, one for all agents that share it, and one per bridge. `run` is the id
    of this run of the network."""
    own = [(name,) for name, agent in config.file.agents.items() if agent.process == "own"]
    shared = tuple(name for name, agent in config.file.agents.items() if agent.process == "shared")
    together = [*own, shared, *((name,) for name in config.file.bridges)]
    return [unit(config, url, tokens, run, names) for names in together if names]


def unit(
    config: LoadedConfig, url: str, tokens: Mapping[str, str], run: str, names: tuple[str, ...]
) -> Unit:
    """The process of these agents, or of this bridge."""
    python, path = (sys.executable, "-m"), str(config.path)
    mine = json.dumps({name: tokens[name] for name in names})
    environment = {URL: url, RUN: run, "PYTHONUNBUFFERED": "1", TOKENS: mine}
    if names[0] in config.file.bridges:
        bridge = ("hubbub", "bridges", "run", "--config", path, "--name", names[0])
        return Unit(names, (*python, *bridge), environment)
    arguments = (path, *names)
    return Unit(names, (*python, "hubbub.cli.agent_process", *arguments), environment, arguments)


def modules(config: LoadedConfig) -> Sequence[str]:
    """What the processes of the network's agents import; nothing if it starts no agent."""
    kinds = {agent.kind for agent in config.file.agents.values()}
    return _MODELS if kinds & {"llm", *ROLES_OF} else _AGENTS if kinds else ()
