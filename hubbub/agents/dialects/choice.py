"""Which dialect a model is spoken to in, and what has been learned about its endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hubbub.agents.dialects.base import Dialect
from hubbub.agents.dialects.final_output import FinalOutputObject
from hubbub.agents.dialects.native import Native
from hubbub.agents.dialects.tool_call import ToolCallLines
from hubbub.config.agents import DialectName, ModelConfig

__all__ = ["DIALECTS", "DialectChoice", "Lessons"]

DIALECTS: Mapping[DialectName, Dialect] = MappingProxyType(
    {d.name: d for d in (Native(), ToolCallLines(), FinalOutputObject())}
)
_FALLBACK: DialectName = "tool_call"


class Lessons:
    """Models that cannot be asked natively, by endpoint and name, each with the reason."""

    def __init__(self) -> None:
        self._learned: dict[tuple[str, str], str] = {}

    def learn(self, endpoint: str, model: str, why: str) -> None:
        self._learned.setdefault((endpoint, model), why)

    def of(self, endpoint: str, model: str) -> str | None:
        """Why not natively; None: nothing speaks against it."""
        return self._learned.get((endpoint, model))


PROCESS = Lessons()
"""What this process has learned: all its agents know it, until the process ends."""


class DialectChoice:
    """The dialect of one model. What the config says holds; else `native`, as long as it works.

    `required`: the endpoint is asked to require a tool call, so that an answer without one shows
    that it does not listen.
    """

    def __init__(self, config: ModelConfig | None = None, lessons: Lessons = PROCESS):
        """Without a config: `native`, whatever happens."""
        self._fixed: DialectName | None = config.dialect if config else "native"
        self._endpoint = (config.base_url, config.model) if config else ("", "")
        self._lessons = lessons
        self.required = config is not None and config.tool_choice == "required"

    @property
    def current(self) -> Dialect:
        """What to speak now."""
        return DIALECTS[self._fixed or (_FALLBACK if self.lesson else "native")]

    @property
    def lesson(self) -> str | None:
        """Why the model is not asked natively, if that was learned and not configured."""
        return None if self._fixed else self._lessons.of(*self._endpoint)

    @property
    def may_fall_back(self) -> bool:
        """Whether a failure of `native` may lead to another dialect."""
        return self._fixed is None

    def fall_back(self, why: str) -> None:
        """From here on, in the whole process, this model is not asked natively any more."""
        self._lessons.learn(*self._endpoint, why)
