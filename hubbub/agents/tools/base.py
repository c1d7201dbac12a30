"""What a tool is, and how it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.errors import HubbubError
from hubbub.ids import write_id
from hubbub.protocol.messages import Permission

__all__ = [
    "CallSite",
    "Confirm",
    "FromOutside",
    "ReadingTool",
    "Tool",
    "ToolFailed",
    "ToolSource",
]

Confirm: TypeAlias = bool | Literal["tainted"]
"""Whether a person must approve each call; tainted: only in turns that have read something from
outside the network."""


class FromOutside(str):
    """A result that carries content from outside the network, whatever is said of its tool."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where in which turn a call stands."""

    turn: str
    step: int
    index: int
    """Of the call within its step, from 0."""
    thread_id: str = ""
    """Canonical id of the thread that woke the agent."""
    outside: bool = False
    """Whether what the model had read when it made the call came from outside the network."""

    @property
    def cid(self) -> str:
        """The idempotency key of the write that the call makes."""
        return write_id(self.turn, self.step, self.index)


class ToolFailed(HubbubError):
    """A call that failed in a way that the model should know about.

    A tool function may raise it to choose the words. `error` is the kind of failure, `retry` says
    whether the same call may succeed later, `near` are valid names for one that was misspelled,
    `outside` whether the message carries content from outside the network.
    """

    def __init__(
        self,
        message: str,
        *,
        error: str = "tool_failed",
        retry: bool = False,
        near: Sequence[str] = (),
        outside: bool = False,
    ):
        self.message, self.error, self.retry, self.near = message, error, retry, tuple(near)
        self.outside = outside
        super().__init__(message)


class Tool(Protocol):
    """Something that a model may call.

    confirm     a person must approve each call, or (`tainted`) those of some turns
    idempotent  running it twice does no more than once
    ordered     calls of one step run one after the other, in the order the model gave them
    speaks      a call that succeeds has sent a message
    timeout     seconds, or None for the agent's default
    """

    @property
    def name(self) -> str: ...
    @property
    def spec(self) -> ToolSpec: ...
    @property
    def permission(self) -> Permission: ...
    @property
    def confirm(self) -> Confirm: ...
    @property
    def idempotent(self) -> bool: ...
    @property
    def ordered(self) -> bool: ...
    @property
    def speaks(self) -> bool: ...
    @property
    def timeout(self) -> float | None: ...

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """The result as a model reads it. Raises `ToolFailed`, or whatever the tool raises."""
        ...


class ReadingTool:
    """What tools have in common that change nothing: they may run again, and side by side."""

    permission: Permission = "read"
    confirm: Confirm = False
    idempotent = True
    ordered = False
    speaks = False
    timeout: float | None = None


# Tools that come and go while the agent runs, and what is said of it.


class ToolSource(Protocol):
    """Where such tools come from: `hubbub.agents.tools.mcp.McpServers`."""

    def tools(self) -> Sequence[Tool]:
        """Those that can be called at present."""
        ...

    def absences(self) -> Mapping[str, str]:
        """By its name, why something cannot be reached at present whose tools should be here."""
        ...
