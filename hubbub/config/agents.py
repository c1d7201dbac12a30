"""Models and agents in the YAML."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from hubbub.config.units import Id, Section, Span
from hubbub.protocol.messages import Card

__all__ = ["AgentConfig", "History", "ModelConfig", "Price"]


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
