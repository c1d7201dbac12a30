"""What owners ask of a hub: tokens, its state, its mods, and the processes of its agents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from hubbub.protocol.messages import Model, Name, Participant
from hubbub.protocol.operations import Input

__all__ = [
    "AgentLog",
    "AgentProcess",
    "AgentProcesses",
    "ConfigureMod",
    "ListAgentProcesses",
    "ListMods",
    "ListTokens",
    "ModState",
    "ModStates",
    "NetworkStatus",
    "NewToken",
    "OneAgent",
    "ReadStatus",
    "TokenCount",
    "TokenCounts",
    "TokenFor",
]


class TokenFor(Input):
    participant: Name


class ListAgentProcesses(Input):
    pass


class OneAgent(Input):
    agent: Name


class AgentProcess(Model):
    """An agent that the network itself starts."""

    agent: str
    state: Literal["running", "restarting", "stopped", "given_up"]
    """Restarting: it has ended and is started again after a pause. Given up: it ended too often."""
    pid: int | None = None
    since: datetime | None = None
    """When the process began."""
    deaths: int = 0
    """How often it has ended by itself."""
    code: int | None = None
    """The exit code of the last one that ended, or minus the signal that ended it."""
    together: tuple[str, ...] = ()
    """Other agents that live in the same process, and share its fate."""


class AgentProcesses(Model):
    processes: tuple[AgentProcess, ...]


class AgentLog(Model):
    """The last of what an agent's process has written."""

    agent: str
    lines: tuple[str, ...]


class NewToken(Model):
    participant: str
    token: str
    """Shown this once."""


class ListTokens(Input):
    pass


class TokenCount(Model):
    participant: str
    tokens: int


class TokenCounts(Model):
    participants: tuple[TokenCount, ...]
    """Those who have any, by name."""


class ReadStatus(Input):
    pass


class NetworkStatus(Model):
    """How the hub is doing."""

    network: str
    epoch: str
    head: int
    """The last position of the log."""
    sessions: int
    present: int
    """Participants who are connected."""
    participants: int
    threads: int
    channels: int
    commit_queue: int
    """Messages and changes waiting for the next commit."""
    draining: bool
    down: tuple[Participant, ...] = ()
    """Agents that do not run and will not by themselves."""


class ListMods(Input):
    """Nothing to say."""


class ConfigureMod(Input):
    name: Name
    """The mod; see list_mods."""
    settings: Mapping[str, JsonValue]
    """All of its settings, as they would stand in the YAML; what is left out has its default."""


class ModState(Model):
    """A mod that runs. Its settings are not shown: there may be secrets in them."""

    name: str
    about: str
    """What it does."""
    operations: tuple[str, ...]
    """Names of the operations that it adds."""
    failures: int
    """How often it has failed since the network started."""


class ModStates(Model):
    mods: tuple[ModState, ...]
    """In the order in which messages pass them."""
