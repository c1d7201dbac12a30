"""A network's YAML file as models. `hubbub network schema` prints their JSON Schema.

The schema is for editors that complete and check while you type. Unknown keys are errors; the
loader reports them with file and line.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from hubbub.config.agent_files import AgentFolder
from hubbub.config.agents import (
    A2aPeerConfig,
    AcpConfig,
    AgentConfig,
    ForkConfig,
    HistoryConfig,
    ModelConfig,
    Price,
    RolesConfig,
)
from hubbub.config.budgets import (
    ApprovalsConfig,
    BreakerConfig,
    Budgets,
    DailyBudget,
    DailyBudgets,
    LoopLimitConfig,
)
from hubbub.config.knowledge import Knowledge, KnowledgeConfig
from hubbub.config.prompting import (
    ComponentConfig,
    ComponentsConfig,
    ExampleConfig,
    ExampleStep,
    PromptConfig,
    RolloutConfig,
)
from hubbub.config.tooling import McpServerConfig
from hubbub.config.units import GatewayToken, HostName, Id, Section, Size, Span
from hubbub.protocol.messages import Card

__all__ = [
    "A2aConfig",
    "A2aPeerConfig",
    "AcpConfig",
    "AgentConfig",
    "AgentFolder",
    "ApprovalsConfig",
    "BreakerConfig",
    "BridgeConfig",
    "Budgets",
    "ChannelConfig",
    "ComponentConfig",
    "ComponentsConfig",
    "DailyBudget",
    "DailyBudgets",
    "ExampleConfig",
    "ExampleStep",
    "ForkConfig",
    "HistoryConfig",
    "HumanConfig",
    "KnowledgeConfig",
    "Limits",
    "LoopLimitConfig",
    "McpServerConfig",
    "ModelConfig",
    "NetworkConfig",
    "NetworkFile",
    "Price",
    "PromptConfig",
    "RolesConfig",
    "RolloutConfig",
    "WakePolicy",
    "json_schema",
]


class Limits(Section):
    """Limits for one participant."""

    frame: Size = 256 * 1024
    """Bytes per frame."""
    json_depth: Annotated[int, Field(ge=8, le=100)] = 32
    """Nesting depth of objects and lists in a frame."""
    text: Size = 64 * 1024
    """Bytes per text."""
    calls_per_second: Annotated[float, Field(gt=0)] = 20
    """Sustained call rate of a participant."""
    burst: Annotated[int, Field(ge=1)] = 100
    """Calls that a participant can make at once."""
    channels: Annotated[int, Field(ge=1)] = 128
    """Channels in the network."""
    thread_depth: Annotated[int, Field(ge=0, le=20)] = 5
    """Nesting depth of reply threads."""
    unacknowledged: Annotated[int, Field(ge=1)] = 256
    """Events in flight per socket."""
    unsent: Size = 1024 * 1024
    """Unread bytes after which a socket is closed as slow."""
    unsent_for: Span = 10.0
    """Seconds without accepting data after which a socket is closed as slow."""
    identify_within: Span = 10.0
    """Seconds after which a socket that has not identified is closed."""
    heartbeat: Span = 25.0
    """Seconds between pings."""
    heartbeat_reply: Span = 8.0
    """Seconds to wait for a pong."""
    bad_frames: Annotated[int, Field(ge=1)] = 100
    """Bad frames after which a socket is closed with 4501; each good frame offsets one."""
    connections: Annotated[int, Field(ge=1)] = 4096
    """Total connections."""
    strangers: Annotated[int, Field(ge=1)] = 1024
    """Unidentified connections per address."""


class WakePolicy(Section):
    broadcast: Literal["humans", "all", "mentioned"] = "humans"
    """Whose broadcasts wake agents without mentioning them."""
    loop_limit: LoopLimitConfig = LoopLimitConfig()
    """How often two agents can wake each other."""


class A2aConfig(Section):
    """Agents that are available over A2A."""

    agents: Annotated[list[Id], Field(min_length=1)]
    """Their names. The first one's card is at the hub's well-known address."""
    url: str | None = None
    """The hub's public address, for the cards: `https://agents.example.org`. Default: the address
    at which the card is requested."""
    push_hosts: list[str] = []
    """Hosts to which notifications can be sent although their addresses are not public."""


class NetworkConfig(Section):
    name: Id = "hubbub"
    """The network's name."""
    listen: str = "127.0.0.1:4820"
    """host:port"""
    hosts: list[HostName] = []
    """Host names by which browsers reach the hub, directly or through a proxy, such as
    `newsroom.example.org`; with the port if it is not the default one. IP addresses, `localhost`
    and the host of `listen` are always allowed."""
    store: str = "sqlite:hubbub.db"
    """sqlite:<file>, sqlite::memory: or postgresql://<user>@<host>/<database>"""
    auth: Literal["tokens", "open"] = "tokens"
    """tokens, or open: anyone on this machine can join under any name (loopback only)."""
    limits: Limits = Limits()
    """Limits for each participant."""
    wake: WakePolicy = WakePolicy()
    """Which messages wake agents."""
    budgets: Budgets = Budgets()
    """Limits for each interaction."""
    daily: DailyBudgets = DailyBudgets()
    """Limits for each day."""
    breaker: BreakerConfig = BreakerConfig()
    """When a thread is stopped because too many turns start in it."""
    approvals: ApprovalsConfig = ApprovalsConfig()
    """Who approves tool calls that need approval."""
    allow_mods: list[str] | None = None
    """Third-party mods that are allowed to run. Default: all in `mods`."""
    agent_folder: AgentFolder | None = None
    """The folder for agents that owners create while the network runs, on the page or with `hubbub
    agents add`. Default: none can be created."""
    mcp: bool = False
    """Whether MCP hosts can join over HTTP, at `/mcp/NAME` on the hub's port, with a token."""
    openai: bool = False
    """Whether OpenAI API clients can talk to agents, at `/v1` on the hub's port; a
    person's token is the API key."""
    a2a: A2aConfig | None = None
    """Agents that are available over A2A, at `/a2a/NAME` on the hub's port; a person's token
    identifies the caller. Default: none."""
    gateway_token: GatewayToken | None = None
    """The token of gateways (`hubbub gateway`), which see all messages; preferably
    `${HUBBUB_GATEWAY_TOKEN}`. Default: no gateways."""
    compression: bool = False
    """Compress frames: less traffic, but three times the memory per connection."""


class ChannelConfig(Section):
    description: str = ""
    """The channel's purpose; agents read it too. Default: the one it already has."""
    members: Literal["all"] | list[Id] = "all"
    """`all` (participants join the channel automatically when they or it are new, so not when it
    had a list before), or a list: then no one else can join, and a start of the network removes
    members who are not listed any more. To close a channel, list no members: one that is removed
    from the file stays, and anyone can join it."""


class HumanConfig(Section):
    roles: list[Literal["owner", "member"]] = ["member"]
    """owner: can observe everything and create tokens."""
    card: Card = Card()
    """The person's description for others."""


class BridgeConfig(Section):
    kind: str
    """irc, matrix, or `file.py:ClassName`, a subclass of `hubbub.bridges.chat.Chat`."""
    channels: Annotated[dict[Id, str], Field(min_length=1)]
    """Open channels of the network, each with the other chat's channel, for example
    `{dev: "#dev"}`."""
    settings: dict[str, JsonValue] = {}
    """The other chat's address and credentials."""


class NetworkFile(Section):
    """A network's YAML file."""

    network: NetworkConfig = NetworkConfig()
    """The hub."""
    channels: dict[Id, ChannelConfig] = {}
    """Channels by name."""
    mods: list[str | dict[str, dict[str, JsonValue] | None]] = []
    """Built-in or installed mods, or `file.py:ClassName`, optionally with their settings; in the
    order of the pipeline."""
    models: dict[Id, ModelConfig] = {}
    """Models by the name that agents use."""
    mcp_servers: dict[Id, McpServerConfig] = {}
    """MCP servers by the name that agents use."""
    knowledge: Knowledge = KnowledgeConfig()
    """Folders of Markdown that all agents with a model can search."""
    agents: dict[Id, AgentConfig] = {}
    """Agents by name."""
    humans: dict[Id, HumanConfig] = {}
    """People who are registered before they join, by name."""
    bridges: dict[Id, BridgeConfig] = {}
    """Bridges to other chats, by name. A person there joins as `NAME-PERSON`."""

    @property
    def owners(self) -> tuple[str, ...]:
        """The people in `humans` with the role owner."""
        return tuple(name for name, human in self.humans.items() if "owner" in human.roles)

    def is_owner(self, person: str) -> bool:
        """Whether the person is an owner, as everybody is in an open network."""
        is_open = self.network.auth == "open" and self.bridge_of(person) is None
        return is_open or person in self.owners

    def may_join(self, participant: str, channel: str) -> bool:
        """Whether the participant can be a member of the channel."""
        declared, agent = self.channels.get(channel), self.agents.get(participant)
        return (
            declared is None
            or declared.members == "all"
            or participant in declared.members
            or (agent is not None and channel in agent.channels)
        )

    def bridge_of(self, participant: str) -> str | None:
        """The bridge that a participant belongs to, as the bridge itself or one of its people."""
        return next(
            (b for b in self.bridges if participant == b or participant.startswith(f"{b}-")), None
        )

    def agent(self, name: str) -> AgentConfig:
        """An agent's section, combined with network-wide settings. Raises `KeyError`."""
        own = self.agents[name]
        return own.model_copy(update={"knowledge": self.knowledge.joined(own.knowledge)})


_REFERENCE: JsonValue = {"type": "string", "pattern": r"\$\{"}


def json_schema() -> dict[str, JsonValue]:
    """The JSON Schema of a network file.

    Beyond the models, it allows `include`, and `${NAME}` in place of numbers and booleans.
    """
    schema: dict[str, JsonValue] = NetworkFile.model_json_schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["include"] = {
        "title": "Include",
        "description": "Files to merge underneath this one; paths are relative to this file.",
        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}],
    }
    loose = {key: _with_references(value) for key, value in schema.items()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **loose}


def _with_references(node: JsonValue) -> JsonValue:
    if isinstance(node, list):
        return [_with_references(value) for value in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") in ("integer", "number", "boolean"):
        return _loosened(node)
    return {key: _with_references(value) for key, value in node.items()}


def _loosened(node: dict[str, JsonValue]) -> JsonValue:
    """A schema that also accepts a reference; its description stays at the top."""
    about = {k: v for k, v in node.items() if k in ("title", "description", "default")}
    rule: JsonValue = {k: v for k, v in node.items() if k not in about}
    about["anyOf"] = [rule, _REFERENCE]
    return about
