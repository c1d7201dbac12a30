"""A request, independent of its protocol.

A request contains the whole conversation, as alternating groups: the asker's input up to an answer,
then that answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hubbub.protocol.external_tools import ExternalResult, ExternalTool

__all__ = ["AgentAnswer", "InboundRequest", "RequestFile", "UserInput"]


@dataclass(frozen=True)
class RequestFile:
    """An attached file."""

    name: str
    media_type: str = "application/octet-stream"
    data: bytes = b""
    uri: str = ""
    """Its location, if the content was not included."""

    @cached_property
    def digest(self) -> str:
        """Equal for equal content."""
        return hashlib.sha256(self.data or self.uri.encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class UserInput:
    """The asker's input between two answers."""

    text: str
    instructions: str = ""
    results: tuple[ExternalResult, ...] = ()
    files: tuple[RequestFile, ...] = ()
    digests: tuple[str, ...] = ()
    """Those of the files, if only these are known."""

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for equal content."""
        digests = self.digests or (file.digest for file in self.files)
        return "asker", self.text, *(result.id for result in self.results), *digests


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """An answer of the agent."""

    text: str
    calls: tuple[str, ...] = ()
    """Ids of the tool calls it handed to the asker."""

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for equal content."""
        return "agent", self.text, *self.calls


@dataclass(frozen=True, slots=True)
class InboundRequest:
    """A question to an agent, with the conversation so far."""

    model: str
    groups: Sequence[UserInput | AgentAnswer]
    """Alternating; the last one is a `UserInput`."""
    tools: tuple[ExternalTool, ...] = ()
    stream: bool = False
    include_usage: bool = False
    user: str = ""
    """The asker's own name for the conversation."""
    previous: str = ""
    """The message (m42) whose conversation it continues."""

    @property
    def new(self) -> UserInput:
        last = self.groups[-1]
        assert isinstance(last, UserInput), "checked when the request was built"
        return last
