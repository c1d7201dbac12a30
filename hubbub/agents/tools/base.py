"""The interface of tools, and how they fail."""

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
    "ReadingTool",
    "SendingTool",
    "Tool",
    "ToolFailed",
    "ToolSource",
    "UntrustedText",
]

Confirm: TypeAlias = bool | Literal["untrusted"]
"""Whether a person must approve each call; `untrusted`: only in turns that have read untrusted
content."""


class UntrustedText(str):
    """A result with untrusted content (from outside the network), whatever its tool declares."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CallSite:
    """The position of a call: turn, step and index."""

    turn: str
    step: int
    index: int
    """Of the call within its step, from 0."""
    thread_id: str = ""
    """Canonical id of the thread that woke the agent."""
    untrusted: bool = False
    """Whether the model had read untrusted content when it made the call."""
    request: str = ""
    """The one request that the turn works on, if there is one."""

    @property
    def cid(self) -> str:
        """The idempotency key of the write that the call makes."""
        return write_id(self.turn, self.step, self.index)


class ToolFailed(HubbubError):
    """A failed call that the model should know about.

    A tool function can raise it to choose the message. `error` is the kind of failure, `retry`
    whether the same call may succeed later. `near` lists valid names similar to a misspelled one.
    `untrusted`: the message has untrusted content.
    """

    def __init__(
        self,
        message: str,
        *,
        error: str = "tool_failed",
        retry: bool = False,
        near: Sequence[str] = (),
        untrusted: bool = False,
    ):
        self.message, self.error, self.retry, self.near = message, error, retry, tuple(near)
        self.untrusted = untrusted
        super().__init__(message)


class Tool(Protocol):
    """A tool that a model can call.

    confirm     a person must approve each call, or (`untrusted`) those of some turns
    idempotent  running it twice has the same effect as running it once
    ordered     calls in one step run one after the other, in the model's order
    speaks      a successful call sends a message
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
        """The result as a model reads it. Raises `ToolFailed`, or any exception of the tool."""
        ...


class ReadingTool:
    """Base of tools that change nothing: they can be repeated, and run in parallel."""

    permission: Permission = "read"
    confirm: Confirm = False
    idempotent = True
    ordered = False
    speaks = False
    timeout: float | None = None


class SendingTool:
    """Base of tools that send one message under the call's own key: they can be repeated, and keep
    the model's order.
    """

    permission: Permission = "write"
    confirm: Confirm = False
    idempotent = True
    ordered = True
    speaks = True
    timeout: float | None = None


# Tools that appear and disappear while the agent runs.


class ToolSource(Protocol):
    """A source of such tools: `hubbub.agents.tools.mcp.McpServers`."""

    def tools(self) -> Sequence[Tool]:
        """The tools that can be called now."""
        ...

    def absences(self) -> Mapping[str, str]:
        """The reasons why sources cannot be reached now, by name."""
        ...
