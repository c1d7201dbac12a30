"""What is asked, whichever protocol says it.

A conversation is told as groups that take turns: what the asker says until the agent answers, and
that answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.protocol.external_tools import ExternalResult, ExternalTool

__all__ = ["Answered", "InboundRequest", "RequestFile", "UserInput"]


@dataclass(frozen=True, slots=True)
class RequestFile:
    """Something that is attached."""

    name: str
    media_type: str = "application/octet-stream"
    data: bytes = b""
    uri: str = ""
    """Where it is, if it was not sent along."""


@dataclass(frozen=True, slots=True)
class UserInput:
    """What the asker says at once."""

    text: str
    instructions: str = ""
    results: tuple[ExternalResult, ...] = ()
    files: tuple[RequestFile, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for the same words."""
        return "asker", self.text, *(result.id for result in self.results)


@dataclass(frozen=True, slots=True)
class Answered:
    """What the agent has said."""

    text: str
    calls: tuple[str, ...] = ()
    """Ids of the calls that it has handed over."""

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for the same words."""
        return "agent", self.text, *self.calls


@dataclass(frozen=True, slots=True)
class InboundRequest:
    """A request."""

    model: str
    groups: Sequence[UserInput | Answered]
    """They take turns, and the last one is `UserInput`."""
    tools: tuple[ExternalTool, ...] = ()
    stream: bool = False
    include_usage: bool = False
    user: str = ""
    """The conversation that it belongs to, as the asker calls it."""
    previous: str = ""
    """The question whose conversation it goes on with (m42)."""

    @property
    def new(self) -> UserInput:
        last = self.groups[-1]
        assert isinstance(last, UserInput), "seen to when it was made"
        return last
