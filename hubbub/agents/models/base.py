"""A model as the loop sees it: a question with tools, an answer with calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from hubbub.agents.chat import ChatMessage
from hubbub.protocol.turns import Compressed, WaitStrategy, Window

__all__ = ["Answer", "CallRequest", "Model", "Question", "ToolSpec"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked."""

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec]


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
    notes: tuple[str, ...] = ()


class Model(Protocol):
    """An endpoint and a model of it."""

    @property
    def name(self) -> str:
        """What the turn's record says."""
        ...

    async def answer(self, question: Question) -> Answer:
        """Raises `ModelError` when there is no answer and asking again will not help."""
        ...

    async def close(self) -> None: ...
