"""Chooses, among many tools, those that resemble the incoming messages most."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Protocol

from hubbub.agents.models.base import ToolSpec
from hubbub.config.agents import AgentConfig, ModelConfig
from hubbub.errors import ModelError

__all__ = ["LikelyTools", "ToolChooser"]

_MOST_TEXT = 4000
"""Characters that are compared."""
_STEM = 5
"""Letters that are compared of a word: `refund`, `refunds`, `refunded` are the same."""
_WORD = re.compile(r"[^\W_]+")


class Embedder(Protocol):
    """Computes embeddings: `hubbub.agents.models.embeddings`."""

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]: ...
    async def embed_cached(self, texts: Sequence[str]) -> list[Sequence[float]]: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LikelyTools:
    """The most likely tools, best first, and a note on how they were chosen."""

    names: Sequence[str] = ()
    note: str | None = None


class ToolChooser:
    """Chooses `first` tools, by words if there is no `embed`."""

    def __init__(self, first: int, embed: Embedder | None = None):
        self._first, self._embed = first, embed

    @classmethod
    def of(cls, config: AgentConfig, models: Mapping[str, ModelConfig]) -> ToolChooser | None:
        """For an agent's config; None: its model picks all of them."""
        select = config.select
        if select is None or select.by == "words":
            return cls(select.first) if select is not None else None
        from hubbub.agents.models.embeddings import Embeddings  # the library is slow to import

        own = models[config.model]
        other = models.get(select.model or config.model)
        return cls(
            select.first, Embeddings(other or own.model_copy(update={"model": select.model}))
        )

    async def close(self) -> None:
        if self._embed is not None:
            await self._embed.close()

    async def choose(self, text: str, tools: Sequence[ToolSpec]) -> LikelyTools:
        """Those of the tools that fit `text` best."""
        if not tools or not text.strip():
            return LikelyTools()
        text = text[-_MOST_TEXT:]
        if self._embed is None:
            return LikelyTools(by_words(text, tools)[: self._first])
        try:
            there = await self._embed.embed_cached([_compared_text(tool) for tool in tools])
            (asked,) = await self._embed.embed([text])
        except ModelError as exc:
            note = f"tools were chosen by their words: {exc}"
            return LikelyTools(by_words(text, tools)[: self._first], note)
        if len(asked) != len(there[0]):
            note = "tools were chosen by their words: the endpoint's vectors have two lengths"
            return LikelyTools(by_words(text, tools)[: self._first], note)
        near = [_cosine(asked, vector) for vector in there]
        order = sorted(range(len(tools)), key=lambda n: -near[n])
        return LikelyTools([tools[n].name for n in order[: self._first]])


def by_words(text: str, tools: Sequence[ToolSpec]) -> list[str]:
    """The tools that share words with the text, best first; rare words count more."""
    words = [set(_stems(_compared_text(tool))) for tool in tools]
    rarity = {
        w: math.log(1 + len(tools) / n) for w, n in Counter(w for t in words for w in t).items()
    }
    asked = set(_stems(text))
    scores = [sum(rarity[w] for w in asked & own) / math.sqrt(len(own) or 1) for own in words]
    order = sorted((n for n, score in enumerate(scores) if score), key=lambda n: -scores[n])
    return [tools[n].name for n in order]


def _compared_text(tool: ToolSpec) -> str:
    """The text of a tool that is compared."""
    return f"{tool.name.replace('_', ' ')}: {tool.description}"[:_MOST_TEXT]


def _stems(text: str) -> list[str]:
    return [word[:_STEM] for word in _WORD.findall(text.casefold()) if len(word) > 2]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    size = math.sqrt(sum(map(mul, one, one)) * sum(map(mul, other, other)))
    return sum(map(mul, one, other)) / size if size else 0.0
