"""A model as the loop sees it: a question with tools, an answer with calls."""

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

__all__ = ["Answer", "CallRequest", "Delta", "Model", "OnDelta", "Question", "ToolSpec"]


@dataclass(frozen=True)
class ToolSpec:
    """A tool as a model is told of it."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    """A JSON Schema of an object: what the arguments of a call are checked by."""
    told: dict[str, JsonValue] | None = None
    """What of it models are told, if that is less: arguments that few need are left out."""

    @cached_property
    def offered(self) -> dict[str, JsonValue]:
        """The schema as models are offered it, in what all engines accept."""
        return portable(self.parameters if self.told is None else self.told)

    @cached_property
    def strict(self) -> dict[str, JsonValue] | None:
        """The same as a strict schema; None: it cannot be one."""
        return strict(self.offered)

    @cached_property
    def offered_text(self) -> str:
        """The same as JSON."""
        return json.dumps(self.offered, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked. Without `tools` it answers in words alone."""

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    tokens: int | None = None
    """Of all that, counted or estimated; None: nobody has counted."""
    settings: ModelSettings | None = None
    """What this question is asked with, over what the model's config says."""
    form: dict[str, JsonValue] | None = None
    """The JSON Schema of an object, which an answer in words must be: the endpoint sees to it."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A tool call that a model wants. `arguments` is its text, which may be no JSON at all."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said. `finish_reason` is the endpoint's word: `tool_calls`, `length`, ...

    `cost_usd` is None where it is not known: without a price, or without a count of the tokens.
    The fields from `wait` on are as in `hubbub.protocol.turns.Step`, where they are recorded.
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
    """Whether what it says could be read without doubt: else it has no calls."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer that is being written: of its text, or of the arguments of a call."""

    text: str = ""
    call: int | None = None
    """Which call of the answer, from 0; None: it is the answer's text."""
    name: str = ""
    """The tool of that call, as far as it is known."""
    attempt: int = 1
    """Counts up when an answer broke off and is asked for again: earlier pieces are void then."""


OnDelta: TypeAlias = Callable[[Delta], None]


class Model(Protocol):
    """An endpoint and a model of it."""

    @property
    def name(self) -> str:
        """What the turn's record says."""
        ...

    async def answer(self, question: Question, on_delta: OnDelta | None = None) -> Answer:
        """What the model says. `on_delta` hears it as it is written, if the endpoint streams.

        Raises `ModelError` when there is no answer and asking again will not help, and
        `ToolsRefused` or `FormRefused`, which are one, when the endpoint does not take the
        question's tools or the form of its answer.
        """
        ...

    async def close(self) -> None: ...
