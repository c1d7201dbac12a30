"""The interface of a model: a request with tools, an answer with calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

from pydantic import JsonValue

from hubbub.agents.models.portable_schema import portable, strict
from hubbub.agents.turn.chat import ChatMessage
from hubbub.config.agents import ModelSettings
from hubbub.protocol.turns import Compressed, WaitStrategy, Window

__all__ = [
    "CallRequest",
    "ChatModel",
    "Completion",
    "CompletionRequest",
    "Delta",
    "OnDelta",
    "ToolSpec",
]


@dataclass(frozen=True)
class ToolSpec:
    """A tool's description for a model."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    """The JSON Schema of its arguments, an object; calls are validated against it."""
    shown: dict[str, JsonValue] | None = None
    """The schema shown to models if it differs: it omits rarely needed arguments."""

    @cached_property
    def offered(self) -> dict[str, JsonValue]:
        """The schema offered to models, limited to what all engines accept."""
        return portable(self.parameters if self.shown is None else self.shown)

    @cached_property
    def strict(self) -> dict[str, JsonValue] | None:
        """`offered` as a strict schema; None if it has no strict form."""
        return strict(self.offered)

    @cached_property
    def offered_text(self) -> str:
        """`offered` as JSON."""
        return json.dumps(self.offered, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request to a model. Without `tools`, the model answers in text."""

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    tokens: int | None = None
    """Input tokens, counted or estimated; None if not counted."""
    settings: ModelSettings | None = None
    """Settings for this request; they override the model's config."""
    form: dict[str, JsonValue] | None = None
    """The JSON Schema that the answer's text must match, an object; enforced by the endpoint."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A tool call in an answer. `arguments` is its raw text, which may be invalid JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer. `finish_reason` is the endpoint's: `tool_calls`, `length`, ...

    `tokens_cached` are those of `tokens_in` that the endpoint read from its cache. `cost_usd` is
    None without a price. The fields from `wait` on are recorded in
    `hubbub.protocol.turns.Step`.
    """

    text: str | None = None
    calls: tuple[CallRequest, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    finish_reason: str | None = None
    cost_usd: float | None = None
    wait: WaitStrategy = "all"
    reasoning: str | None = None
    discards: tuple[int, ...] = ()
    compresses: tuple[Compressed, ...] = ()
    window: Window | None = None
    dialect: str | None = None
    model: str | None = None
    understood: bool = True
    """Whether it was parsed without ambiguity; otherwise it has no calls."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """A chunk of a streamed answer: of its text, or of a call's arguments."""

    text: str = ""
    call: int | None = None
    """The index of the call, from 0; None for the answer's text."""
    name: str = ""
    """The tool of that call; empty until the endpoint sends it."""
    attempt: int = 1
    """Incremented when an interrupted answer is requested again; discard earlier deltas then."""


OnDelta: TypeAlias = Callable[[Delta], None]


class ChatModel(Protocol):
    """A model at an endpoint."""

    @property
    def name(self) -> str:
        """The model's name in the turn's record."""
        ...

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        """Request an answer. If the endpoint streams, `on_delta` receives each chunk.

        Raises `ModelError` when there is no answer and retrying will not help. Its subclasses
        `ToolsRefused` and `FormRefused` mean that the endpoint rejects the request's tools or
        response format.
        """
        ...

    async def close(self) -> None: ...
