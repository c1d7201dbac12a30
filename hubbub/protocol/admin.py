"""Administration by owners: tokens, the hub's status, its mods, and agents' processes."""

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
    """Restarting: it ended and starts again after a pause. Given up: it ended too often."""
    pid: int | None = None
    since: datetime | None = None
    """When the process started."""
    deaths: int = 0
    """How often it ended by itself."""
    code: int | None = None
    """The last exit code, or minus the signal that ended it."""
    together: tuple[str, ...] = ()
    """Other agents in the same process."""


class AgentProcesses(Model):
    processes: tuple[AgentProcess, ...]


class AgentLog(Model):
    """The last lines of an agent's process."""

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
    """Participants with tokens, by name."""


class ReadStatus(Input):
    pass


class NetworkStatus(Model):
    """The hub's status."""

    network: str
    epoch: str
    head: int
    """The last position of the log."""
    sessions: int
    present: int
    """Connected participants."""
    participants: int
    threads: int
    channels: int
    commit_queue: int
    """Messages and changes waiting for the next commit."""
    draining: bool
    down: tuple[Participant, ...] = ()
    """Agents that are down and do not restart automatically."""


class ListMods(Input):
    """No arguments."""


class ConfigureMod(Input):
    name: Name
    """The mod; see list_mods."""
    settings: Mapping[str, JsonValue]
    """All of its settings, as in the YAML; omitted ones have their defaults."""


class ModState(Model):
    """A running mod. Its settings are not shown, as they can contain secrets."""

    name: str
    about: str
    """What it does."""
    operations: tuple[str, ...]
    """Names of its operations."""
    failures: int
    """Failures since the network started."""


class ModStates(Model):
    mods: tuple[ModState, ...]
    """In the order that messages pass through them."""
