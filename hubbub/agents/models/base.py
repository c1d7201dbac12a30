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
    """The JSON Schema of its arguments, an object; calls are validated by it."""
    shown: dict[str, JsonValue] | None = None
    """The schema shown to models, if that is less: rarely needed arguments are left out."""

    @cached_property
    def offered(self) -> dict[str, JsonValue]:
        """The schema offered to models, limited to what all engines accept."""
        return portable(self.parameters if self.shown is None else self.shown)

    @cached_property
    def strict(self) -> dict[str, JsonValue] | None:
        """The same as a strict schema; None: it cannot be one."""
        return strict(self.offered)

    @cached_property
    def offered_text(self) -> str:
        """The same as JSON."""
        return json.dumps(self.offered, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request to a model. Without `tools` it answers in text."""

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    tokens: int | None = None
    """Input tokens, counted or estimated; None: not counted."""
    settings: ModelSettings | None = None
    """Settings of this request, which override those in the model's config."""
    form: dict[str, JsonValue] | None = None
    """The JSON Schema of an object that the answer's text must be; the endpoint enforces it."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A tool call in an answer. `arguments` is its raw text, which may be invalid JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer (completion). `finish_reason` is the endpoint's: `tool_calls`, `length`, ...

    `cost_usd` is None if it is not known: without a price, or without a token count. The fields
    from `wait` on are recorded as those of `hubbub.protocol.turns.Step`.
    """

    text: str | None = None
    calls: tuple[CallRequest, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
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
    """Whether it could be parsed without ambiguity; otherwise it has no calls."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer that is being written: of its text, or of the arguments of a call."""

    text: str = ""
    call: int | None = None
    """The index of the call, from 0; None: the answer's text."""
    name: str = ""
    """The tool of that call, as far as it is known."""
    attempt: int = 1
    """Incremented when an interrupted answer is requested again; earlier pieces are void then."""


OnDelta: TypeAlias = Callable[[Delta], None]


class ChatModel(Protocol):
    """A model at an endpoint."""

    @property
    def name(self) -> str:
        """As in the turn's record."""
        ...

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        """The model's answer. `on_delta` receives it as it is written, if the endpoint streams.

        Raises `ModelError` when there is no answer and retrying will not help; its subclasses
        `ToolsRefused` and `FormRefused` mean that the endpoint does not accept the request's tools
        or response format.
        """
        ...

    async def close(self) -> None: ...
