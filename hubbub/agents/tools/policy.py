"""Rules for tool calls: settings, and whether a person must approve. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, Protocol, assert_never

from hubbub.agents.tools.base import Confirm
from hubbub.protocol.messages import Permission

__all__ = [
    "Allow",
    "Decision",
    "NeedsApproval",
    "PermissionMode",
    "PermissionSubject",
    "Refuse",
    "Retry",
    "ToolOverrides",
    "decide",
    "permission_note",
]

# Settings of a tool's calls: retries, result size, timeout. The operator's settings in the YAML
# override the tool's own (its `overrides`, if any).


@dataclass(frozen=True, slots=True)
class Retry:
    """How the runtime retries a call after a temporary failure.

    Only calls of idempotent tools are retried, and only after failures marked `ToolFailed.retry`.
    """

    attempts: int = 3
    """Total number; 1: no retry."""
    backoff: float = 0.5
    """Seconds before the second attempt, doubled before each further one."""
    longest: float = 30.0
    """Maximum seconds between attempts."""
    timeouts: bool = False
    """Whether to retry calls that timed out; the first call may still be running."""

    def pause(self, attempt: int) -> float:
        """Seconds to wait after the failed attempt `attempt`, counted from 1."""
        return float(min(self.backoff * 2 ** min(attempt - 1, 32), self.longest))


_DEFAULT_RETRY = Retry()


@dataclass(frozen=True, slots=True)
class ToolOverrides:
    """Settings of one tool. None: the default."""

    permission: Permission | None = None
    confirm: Confirm | None = None
    timeout: float | None = None
    """Seconds per attempt."""
    retry: Retry | None = None
    budget: int | None = None
    """Maximum tokens of a result."""
    attempts: int | None = None
    """Overrides `retry.attempts`."""
    backoff: float | None = None
    """Overrides `retry.backoff`."""
    untrusted: bool | None = None
    """Whether its results are untrusted; None: each result is marked itself."""

    @property
    def effective_retry(self) -> Retry:
        """How its calls are retried if they can be."""
        retry = self.retry or _DEFAULT_RETRY
        if self.attempts is None and self.backoff is None:
            return retry
        return replace(
            retry,
            attempts=self.attempts or retry.attempts,
            backoff=self.backoff or retry.backoff,
        )

    def with_defaults(self, other: ToolOverrides) -> ToolOverrides:
        """These settings, with unset ones from `other`."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(other, **{key: value for key, value in own.items() if value is not None})


PermissionMode = Literal["read_only", "ask", "full"]


class PermissionSubject(Protocol):
    """The properties of a tool that decide whether a call can run."""

    @property
    def name(self) -> str: ...
    @property
    def permission(self) -> Permission: ...
    @property
    def confirm(self) -> Confirm: ...
    @property
    def speaks(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Allow:
    """The call can run."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call must not run, and no approval can change that."""

    reason: str


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """The call can run once a person approves it."""

    reason: str


Decision = Allow | Refuse | NeedsApproval


def decide(tool: PermissionSubject, mode: PermissionMode, *, untrusted: bool = False) -> Decision:
    """Whether a call can run in `mode`. `untrusted`: its turn has read untrusted content."""
    harmless = tool.permission == "read" or (tool.permission == "write" and tool.speaks)
    if mode == "read_only" and not harmless:
        return Refuse(f"{tool.name} changes things ({tool.permission}), and this agent only reads")
    if tool.confirm is True:
        return NeedsApproval(f"each call of {tool.name} must be approved by a person")
    if tool.confirm == "untrusted" and untrusted:
        return NeedsApproval(f"{tool.name} {_UNTRUSTED}")
    if mode == "ask" and not harmless:
        reason = f"{tool.name} changes things ({tool.permission}), and this agent must ask first"
        return NeedsApproval(reason)
    return Allow()


_UNTRUSTED = (
    "must be approved by a person in a turn that has read something from outside the network"
)


def permission_note(mode: PermissionMode) -> str:
    """What a model should know about its permission mode; empty if nothing."""
    match mode:
        case "read_only":
            return "You may look things up and talk, but change nothing: tools that do are not here"
        case "ask":
            return (
                "Tools that change something run only when a person has approved the call. "
                "A call that was not approved has had no effect"
            )
        case "full":
            return ""
        case _:
            assert_never(mode)
