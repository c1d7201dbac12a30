"""Which processes a network's agents run in, and what each is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from hubbub.app.supervisor import Unit
from hubbub.config.loader import LoadedConfig

__all__ = ["RUN", "TOKENS", "URL", "agent_tokens", "units"]

URL = "HUBBUB_URL"
RUN = "HUBBUB_RUN"
TOKENS = "HUBBUB_TOKENS"
"""A JSON object of tokens by agent. Environments are private to a user, command lines are not."""


def units(config: LoadedConfig, url: str, tokens: Mapping[str, str], run: str) -> list[Unit]:
    """One process per agent, and one for all that share. `run` names this life of the network."""
    own = [(name,) for name, agent in config.file.agents.items() if agent.process == "own"]
    shared = tuple(name for name, agent in config.file.agents.items() if agent.process == "shared")
    told = {URL: url, RUN: run, "PYTHONUNBUFFERED": "1"}
    return [_unit(config.path, names, tokens, told) for names in [*own, shared] if names]


def _unit(
    path: Path, names: tuple[str, ...], tokens: Mapping[str, str], told: Mapping[str, str]
) -> Unit:
    command = [sys.executable, "-m", "hubbub", "agents", "run", "--config", str(path)]
    for name in names:
        command += ["--name", name]
    mine = {name: tokens[name] for name in names}
    return Unit(names, command, {**told, TOKENS: json.dumps(mine)})


def agent_tokens(environ: Mapping[str, str]) -> dict[str, str]:
    """What the launcher put into the environment of this process; empty without a launcher."""
    text = environ.get(TOKENS)
    if not text:
        return {}
    found = json.loads(text)
    return {str(name): str(token) for name, token in found.items()}
