"""Events of a running network, as data: `hubbub up` shows them, tests wait for them."""

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
    """The hub is listening. Only `StandingBy` is reported before it."""

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
    """A gateway is listening and linked to the owner of its network."""

    url: str
    """ws://host:port with the real port."""
    hubs: tuple[str, ...]
    event: Literal["up"] = "up"


@dataclass(frozen=True, slots=True)
class NodeUp:
    """A node joined its cluster, and takes the networks placed on it."""

    node: str
    networks: tuple[str, ...]
    """All networks it can run."""
    event: Literal["node_up"] = "node_up"


@dataclass(frozen=True, slots=True)
class NetworkTaken:
    """A node owns a network, which is listening there."""

    network: str
    url: str
    event: Literal["taken"] = "taken"


@dataclass(frozen=True, slots=True)
class NetworkLeft:
    """A node no longer owns a network, or could not run it."""

    network: str
    reason: str
    event: Literal["left"] = "left"


@dataclass(frozen=True, slots=True)
class StandingBy:
    """The hub waits for its store."""

    reason: str
    """The hub that owns the store, or why the server does not answer."""
    event: Literal["standing_by"] = "standing_by"


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """An agent process was started; `agents` share it."""

    agents: tuple[str, ...]
    pid: int
    event: Literal["agent_started"] = "agent_started"


@dataclass(frozen=True, slots=True)
class AgentDied:
    """An agent process ended unexpectedly and will be restarted."""

    agents: tuple[str, ...]
    code: int
    """The exit code; negative: the signal that killed it."""
    retry_in_s: float
    event: Literal["agent_died"] = "agent_died"


@dataclass(frozen=True, slots=True)
class AgentGivenUp:
    """An agent process died too often and is no longer restarted."""

    agents: tuple[str, ...]
    code: int
    deaths: int
    event: Literal["agent_given_up"] = "agent_given_up"


@dataclass(frozen=True, slots=True)
class AgentStuck:
    """An agent does not answer pings: its process is killed and restarted."""

    agents: tuple[str, ...]
    event: Literal["agent_stuck"] = "agent_stuck"


@dataclass(frozen=True, slots=True)
class AgentOutput:
    """A line of output of an agent's process."""

    agents: tuple[str, ...]
    stream: Literal["stdout", "stderr"]
    line: str
    event: Literal["agent_output"] = "agent_output"


class MessageSeen(Struct, frozen=True):
    """A message in the log, parsed only when shown: most are not."""

    body: bytes
    """The stored JSON."""
    direct: bool
    """Whether it is visible only to its recipients."""

    @property
    def message(self) -> Message:
        return Message.model_validate_json(self.body)


class MessagesSeen(Struct, frozen=True):
    """Messages were committed to the log together."""

    messages: Sequence[MessageSeen]
    event: ClassVar[Literal["messages"]] = "messages"


@dataclass(frozen=True, slots=True)
class Stopping:
    """The network is stopping."""

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
"""Called on the loop's thread; must not block."""
