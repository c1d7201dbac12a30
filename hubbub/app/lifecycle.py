"""What happens while a network runs, as data: `hubbub up` shows it, tests wait for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from msgspec import Struct

from hubbub.protocol.messages import Message

__all__ = [
    "AgentDied",
    "AgentGivenUp",
    "AgentOutput",
    "AgentStarted",
    "AgentStuck",
    "GatewayUp",
    "LifecycleEvent",
    "MessageSeen",
    "MessagesSeen",
    "NetworkLeft",
    "NetworkTaken",
    "NetworkUp",
    "NodeUp",
    "Report",
    "StandingBy",
    "Stopping",
]


@dataclass(frozen=True, slots=True)
class NetworkUp:
    """The hub listens. Nothing but `StandingBy` is reported before it."""

    network: str
    url: str
    """ws://host:port with the real port."""
    auth: str
    store: str
    agents: tuple[str, ...]
    humans: tuple[str, ...]
    channels: tuple[str, ...]
    event: Literal["up"] = "up"


@dataclass(frozen=True, slots=True)
class GatewayUp:
    """A gateway listens, and has found the owner of its network."""

    url: str
    """ws://host:port with the real port."""
    hubs: tuple[str, ...]
    event: Literal["up"] = "up"


@dataclass(frozen=True, slots=True)
class NodeUp:
    """A node is in its cluster, and takes the networks that are placed there."""

    node: str
    networks: tuple[str, ...]
    """All that it can run."""
    event: Literal["node_up"] = "node_up"


@dataclass(frozen=True, slots=True)
class NetworkTaken:
    """A node owns a network, which listens there."""

    network: str
    url: str
    event: Literal["taken"] = "taken"


@dataclass(frozen=True, slots=True)
class NetworkLeft:
    """A node owns a network no more, or could not run it."""

    network: str
    reason: str
    event: Literal["left"] = "left"


@dataclass(frozen=True, slots=True)
class StandingBy:
    """The hub waits until it can have the store."""

    reason: str
    """Which hub owns it, or why the server cannot be asked."""
    event: Literal["standing_by"] = "standing_by"


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """A process of agents (`agents` share it) was started."""

    agents: tuple[str, ...]
    pid: int
    event: Literal["agent_started"] = "agent_started"


@dataclass(frozen=True, slots=True)
class AgentDied:
    """It ended without being asked to; it will be started again."""

    agents: tuple[str, ...]
    code: int
    """Its exit code; negative: the signal that killed it."""
    retry_in_s: float
    event: Literal["agent_died"] = "agent_died"


@dataclass(frozen=True, slots=True)
class AgentGivenUp:
    """It died so often that it is not started any more."""

    agents: tuple[str, ...]
    code: int
    deaths: int
    event: Literal["agent_given_up"] = "agent_given_up"


@dataclass(frozen=True, slots=True)
class AgentStuck:
    """It answers no pings and has not come back: its process is killed and started again."""

    agents: tuple[str, ...]
    event: Literal["agent_stuck"] = "agent_stuck"


@dataclass(frozen=True, slots=True)
class AgentOutput:
    """A line that an agent's process wrote."""

    agents: tuple[str, ...]
    stream: Literal["stdout", "stderr"]
    line: str
    event: Literal["agent_output"] = "agent_output"


class MessageSeen(Struct, frozen=True):
    """A message in the log. A view reads it only to show it: most are not shown."""

    body: bytes
    """As it is stored, in JSON."""
    direct: bool
    """Whether it is for its recipients alone."""

    @property
    def message(self) -> Message:
        return Message.model_validate_json(self.body)


class MessagesSeen(Struct, frozen=True):
    """Messages went into the log, in one commit."""

    messages: Sequence[MessageSeen]
    event: ClassVar[Literal["messages"]] = "messages"


@dataclass(frozen=True, slots=True)
class Stopping:
    """Everything is being stopped."""

    reason: str
    event: Literal["stopping"] = "stopping"


LifecycleEvent = (
    NetworkUp
    | GatewayUp
    | NodeUp
    | NetworkTaken
    | NetworkLeft
    | AgentStarted
    | AgentDied
    | AgentGivenUp
    | AgentStuck
    | AgentOutput
    | MessagesSeen
    | StandingBy
    | Stopping
)
Report = Callable[[LifecycleEvent], None]
"""Is called in the loop's thread and must not block."""
