"""The YAML of a network as models. `hubbub schema` prints their JSON Schema.

Unknown keys are errors everywhere; the loader turns them into sentences with file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema
from pydantic_core import PydanticCustomError

from hubbub.protocol.messages import Card
from hubbub.protocol.thread_ids import ID_PATTERN

__all__ = [
    "AgentConfig",
    "Budgets",
    "ChannelConfig",
    "History",
    "HumanConfig",
    "Limits",
    "ModelConfig",
    "NetworkConfig",
    "NetworkFile",
    "Price",
    "WakePolicy",
]

_SIZES = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "KIB": 1024, "MIB": 1024**2, "K": 1024}
_SPANS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def _size(value: object) -> object:
    """`256KiB` as bytes (or tokens, for `32k`)."""
    if not isinstance(value, str):
        return value
    match = _AMOUNT.fullmatch(value.strip())
    if match is None or match[2].upper() not in _SIZES:
        raise PydanticCustomError("size", "expected a size: a number of bytes, or 256KiB, 1MB")
    return int(float(match[1]) * _SIZES[match[2].upper()])


def _span(value: object) -> object:
    """`30m` as seconds."""
    if not isinstance(value, str):
        return value
    match = _AMOUNT.fullmatch(value.strip())
    if match is None or match[2] not in _SPANS:
        raise PydanticCustomError("span", "expected a time: a number of seconds, or 500ms, 10s, 2h")
    return float(match[1]) * _SPANS[match[2]]


def _amount_schema(number: str, units: Iterable[str]) -> WithJsonSchema:
    """What an editor accepts: the number, or a number with a unit."""
    names = "|".join(sorted(filter(None, units)))
    text = {"type": "string", "pattern": rf"^\d+(\.\d+)?\s*({names})?$"}
    return WithJsonSchema({"anyOf": [{"type": number, "exclusiveMinimum": 0}, text]})


Size = Annotated[
    int,
    BeforeValidator(_size),
    Field(ge=1),
    _amount_schema("integer", ("B", "KB", "MB", "KiB", "MiB", "k")),
]
"""Bytes: a number, or a text such as 256KiB or 1MB."""
Span = Annotated[float, BeforeValidator(_span), Field(gt=0), _amount_schema("number", _SPANS)]
"""Seconds: a number, or a text such as 500ms, 10s, 30m, 2h."""
Id = Annotated[str, Field(pattern=ID_PATTERN)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Limits(Section):
    """What the hub accepts from one participant."""

    frame: Size = 256 * 1024
    """Bytes of one frame."""
    json_depth: Annotated[int, Field(ge=4, le=100)] = 32
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
    """Bad frames from one socket before it is closed with 4501."""


class WakePolicy(Section):
    broadcast: Literal["humans", "all", "mentioned"] = "humans"
    """Whose broadcasts wake agents that they do not mention."""


class Budgets(Section):
    """Limits of one interaction. This version enforces `hops`."""

    hops: Annotated[int, Field(ge=1, le=1000)] = 8
    """Messages in a row that one message of a person can set in motion."""


class NetworkConfig(Section):
    name: Id = "hubbub"
    """What the network is called."""
    listen: str = "127.0.0.1:4820"
    """host:port"""
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
    compression: bool = False
    """Compress frames: less traffic for three times the memory of a connection."""


class ChannelConfig(Section):
    description: str = ""
    """What the channel is for; agents read it too."""
    members: Literal["all"] | list[Id] = "all"
    """`all` (who joins the network joins the channel), or a list: then nobody else may join."""


class Price(Section):
    """What a model's tokens cost, in US dollars per million. The endpoint's page of prices says it;
    nothing is charged here: turns tell what they have cost by it."""

    input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """For a million tokens that the model reads (prompt, tools, results)."""
    output: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """For a million tokens that it writes."""

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """The price of so many tokens, in US dollars."""
        return round((self.input * tokens_in + self.output * tokens_out) / 1_000_000, 12)


class ModelConfig(Section):
    """An OpenAI-compatible endpoint and a model of it."""

    model: str
    """The model's name at its endpoint."""
    base_url: str = "https://api.openai.com/v1"
    """The endpoint."""
    api_key: str = ""
    """Left out: for endpoints that want none."""
    temperature: float | None = None
    """Left out: the endpoint's own."""
    max_output_tokens: int | None = None
    """Of one answer; left out: the endpoint's own."""
    timeout: Span = 60.0
    """Of one request."""
    retries: Annotated[int, Field(ge=0, le=20)] = 2
    """Of a request that failed for now (429, 500, a timeout)."""
    stream: bool = False
    """Read answers as they are written."""
    tool_choice: Literal["required", "auto"] = "required"
    """`auto` for endpoints that do not know `required`."""
    price: Price | None = None
    """What its tokens cost, for example `{input: 0.25, output: 2.00}`; left out: turns tell tokens
    and no money."""


class History(Section):
    """How much of its threads an agent's prompt shows."""

    messages: Annotated[int, Field(ge=1, le=50)] = 10
    """Per thread."""
    threads: Annotated[int, Field(ge=1, le=200)] = 50
    """The most recently active ones."""
    types: list[Literal["direct", "channel", "broadcast", "mod"]] | None = None
    """Only messages of these types; None: all."""
    hide_senders: list[str] = []
    """Messages of these senders are left out."""


class AgentConfig(Section):
    kind: Literal["llm", "python"] = "llm"
    """llm: a model decides; python: a class does."""
    card: Card = Card()
    """What others are told about the agent."""
    model: str = "default"
    """llm: a name from `models`."""
    instruction: str = ""
    """llm: the system prompt."""
    tools: list[str] | None = None
    """llm: names of operations, or `file.py:function`; left out: all that the agent may use."""
    template: str | None = None
    """llm: a Jinja2 file in place of the shipped conversation template."""
    history: History = History()
    """llm: what its prompt shows."""
    max_steps: Annotated[int, Field(ge=1, le=100)] = 10
    """llm: answers of the model in one turn."""
    turn_timeout: Span = 300.0
    """Of one turn."""
    tool_timeout: Span = 60.0
    """llm: of one tool call."""
    class_: Annotated[str | None, Field(alias="class")] = None
    """python: file.py:ClassName"""
    settings: dict[str, JsonValue] = {}
    """python: handed to the class as `self.settings`."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    """Threads that the agent works in at the same time."""
    ignore_senders: list[Id] = []
    """Participants to whom the agent never reacts."""
    process: Literal["own", "shared"] = "own"
    """own: a process for this agent; shared: one for all that say so."""
    greet: str | None = None
    """A message that the agent broadcasts when the network starts; instead of it `NAME is here
    again.` if it stands among the last 20 broadcasts."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, populate_by_name=True
    )


class HumanConfig(Section):
    roles: list[Literal["owner", "member"]] = ["member"]
    """owner: may watch everything and make tokens."""
    card: Card = Card()
    """What others are told about the person."""


class NetworkFile(Section):
    """One YAML file: a whole network."""

    network: NetworkConfig = NetworkConfig()
    """The hub."""
    channels: dict[Id, ChannelConfig] = {}
    """By name."""
    mods: list[str | dict[str, dict[str, JsonValue] | None]] = []
    """Names, or a name with its settings; their order is the order of the pipeline."""
    models: dict[Id, ModelConfig] = {}
    """By the name that agents use."""
    agents: dict[Id, AgentConfig] = {}
    """By name."""
    humans: dict[Id, HumanConfig] = {}
    """People who are known before they join, by name."""
