"""The YAML of a network as models. `hubbub network schema` prints their JSON Schema.

It is for editors that complete and check while one types. Unknown keys are errors everywhere; the
loader turns them into sentences with file and line.
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
from hubbub.config.units import HostName, Id, Section, Size, Span
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
    """What the hub accepts from one participant."""

    frame: Size = 256 * 1024
    """Bytes of one frame."""
    json_depth: Annotated[int, Field(ge=8, le=100)] = 32
    """Levels of objects and lists inside each other in one frame."""
    text: Size = 64 * 1024
    """Bytes of one text."""
    calls_per_second: Annotated[float, Field(gt=0)] = 20
    """Calls of one participant in the long run."""
    burst: Annotated[int, Field(ge=1)] = 100
    """Calls of one participant at once."""
    channels: Annotated[int, Field(ge=1)] = 128
    """Channels of the network."""
    thread_depth: Annotated[int, Field(ge=0, le=20)] = 5
    """Levels of reply threads inside each other."""
    unacknowledged: Annotated[int, Field(ge=1)] = 256
    """Events in flight to one socket."""
    unsent: Size = 1024 * 1024
    """Bytes a socket may leave unread before it is closed as slow."""
    unsent_for: Span = 10.0
    """Seconds a socket may accept nothing before it is closed as slow."""
    identify_within: Span = 10.0
    """Seconds until a socket that has not identified is closed."""
    heartbeat: Span = 25.0
    """Seconds between pings."""
    heartbeat_reply: Span = 8.0
    """Seconds a pong may take."""
    bad_frames: Annotated[int, Field(ge=1)] = 100
    """Bad frames from one socket before it is closed with 4501; each good frame makes up for one.
    """
    connections: Annotated[int, Field(ge=1)] = 4096
    """Connections in all."""
    strangers: Annotated[int, Field(ge=1)] = 1024
    """Connections of one address that have not identified."""


class WakePolicy(Section):
    broadcast: Literal["humans", "all", "mentioned"] = "humans"
    """Whose broadcasts wake agents that they do not mention."""
    loop_limit: LoopLimitConfig = LoopLimitConfig()
    """How often two agents wake each other."""


class A2aConfig(Section):
    """Agents that others may ask by A2A."""

    agents: Annotated[list[Id], Field(min_length=1)]
    """Their names. The card of the first is at the well-known address of the hub."""
    url: str | None = None
    """Where others reach the hub, for the cards: `https://agents.example.org`; left out: where they
    have asked for the card."""
    push_hosts: list[str] = []
    """Hosts that notifications may be sent to though their addresses are not public."""


class NetworkConfig(Section):
    name: Id = "hubbub"
    """What the network is called."""
    listen: str = "127.0.0.1:4820"
    """host:port"""
    hosts: list[HostName] = []
    """Names by which browsers reach the hub, directly or through a proxy, such as
    `newsroom.example.org`; with the port if that is not the usual one. IP addresses, `localhost`
    and the host of `listen` need not be listed."""
    store: str = "sqlite:hubbub.db"
    """sqlite:<file> or sqlite::memory:"""
    auth: Literal["tokens", "open"] = "tokens"
    """tokens, or open: everybody on this machine may join as anybody (loopback only)."""
    limits: Limits = Limits()
    """What one participant may do."""
    wake: WakePolicy = WakePolicy()
    """Who wakes agents."""
    budgets: Budgets = Budgets()
    """What one interaction may cost."""
    daily: DailyBudgets = DailyBudgets()
    """What a day may cost."""
    breaker: BreakerConfig = BreakerConfig()
    """When a thread is stopped because too much begins in it."""
    approvals: ApprovalsConfig = ApprovalsConfig()
    """Who is asked about tools that need a person's word."""
    allow_mods: list[str] | None = None
    """Names of the mods that may run besides the built-in ones; left out: all that `mods` names."""
    agent_folder: AgentFolder | None = None
    """Where agents live that owners make while the network runs, from the page or with `hubbub
    agents add`. Left out: none can be made."""
    mcp: bool = False
    """Whether MCP hosts may join over HTTP, at `/mcp/NAME` of the hub's port, with a token."""
    openai: bool = False
    """Whether programs that speak the OpenAI API may talk to agents, at `/v1` of the hub's port; a
    person's token is the API key."""
    a2a: A2aConfig | None = None
    """Which agents others may ask by A2A, at `/a2a/NAME` of the hub's port; a person's token proves
    who asks. Left out: none."""
    gateway_token: Annotated[str, Field(min_length=16, max_length=512)] | None = None
    """What gateways (`hubbub gateway`) prove themselves with, best as `${HUBBUB_GATEWAY_TOKEN}`:
    they read all that is said. Left out: there are none."""
    compression: bool = False
    """Compress frames: less traffic for three times the memory of a connection."""


class ChannelConfig(Section):
    description: str = ""
    """What the channel is for; agents read it too."""
    members: Literal["all"] | list[Id] = "all"
    """`all` (who joins the network joins the channel), or a list: then nobody else may join."""


class HumanConfig(Section):
    roles: list[Literal["owner", "member"]] = ["member"]
    """owner: may watch everything and make tokens."""
    card: Card = Card()
    """What others are told about the person."""


class BridgeConfig(Section):
    kind: str
    """irc, matrix, or `file.py:ClassName`, a class that derives from `hubbub.bridges.chat.Chat`."""
    channels: Annotated[dict[Id, str], Field(min_length=1)]
    """Channels of the network that everybody may join, each with that of the other chat, for
    example `{dev: "#dev"}`."""
    settings: dict[str, JsonValue] = {}
    """Where the other chat is, and what opens it."""


class NetworkFile(Section):
    """One YAML file: a whole network."""

    network: NetworkConfig = NetworkConfig()
    """The hub."""
    channels: dict[Id, ChannelConfig] = {}
    """By name."""
    mods: list[str | dict[str, dict[str, JsonValue] | None]] = []
    """Names of built-in or installed mods, or `file.py:ClassName`, alone or with their settings;
    their order is the order of the pipeline."""
    models: dict[Id, ModelConfig] = {}
    """By the name that agents use."""
    mcp_servers: dict[Id, McpServerConfig] = {}
    """Servers of tools (Model Context Protocol), by the name that agents use."""
    knowledge: Knowledge = KnowledgeConfig()
    """Folders of Markdown that all agents with a model search."""
    agents: dict[Id, AgentConfig] = {}
    """By name."""
    humans: dict[Id, HumanConfig] = {}
    """People who are known before they join, by name."""
    bridges: dict[Id, BridgeConfig] = {}
    """To other chats, by name. A person there takes part as `NAME-PERSON`."""

    @property
    def owners(self) -> tuple[str, ...]:
        """The people whom `humans` calls owners."""
        return tuple(name for name, human in self.humans.items() if "owner" in human.roles)

    def bridge_of(self, participant: str) -> str | None:
        """The bridge that a participant of this name belongs to: it, or one of its people."""
        return next(
            (b for b in self.bridges if participant == b or participant.startswith(f"{b}-")), None
        )

    def agent(self, name: str) -> AgentConfig:
        """An agent's section, with what holds for all agents of the network. Raises KeyError."""
        own = self.agents[name]
        return own.model_copy(update={"knowledge": self.knowledge.joined(own.knowledge)})


_REFERENCE: JsonValue = {"type": "string", "pattern": r"\$\{"}


def json_schema() -> dict[str, JsonValue]:
    """The schema of a network file as one writes it.

    Beyond the models: `include`, and a `${NAME}` wherever a number or a switch stands.
    """
    schema: dict[str, JsonValue] = NetworkFile.model_json_schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["include"] = {
        "title": "Include",
        "description": "Files whose maps are merged underneath this one; relative to this file.",
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
    """The value itself or a reference; what describes it stays outside."""
    about = {k: v for k, v in node.items() if k in ("title", "description", "default")}
    rule: JsonValue = {k: v for k, v in node.items() if k not in about}
    about["anyOf"] = [rule, _REFERENCE]
    return about
