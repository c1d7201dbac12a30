"""How tools may be called: what tool and operator say, whether a person is asked. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol, assert_never

from hubbub.agents.tools.base import Confirm
from hubbub.protocol.messages import Permission

__all__ = [
    "Allow",
    "Decision",
    "Judged",
    "NeedsApproval",
    "PermissionMode",
    "Refuse",
    "Retry",
    "ToolOverrides",
    "decide",
    "told",
]

# How a tool's calls are carried out: repetition, size of the result, time. Pure data.
#
# What a tool says of itself (`overrides`, if it has any) is laid under what the operator says of it
# in the YAML.


@dataclass(frozen=True, slots=True)
class Retry:
    """How the runtime repeats a call that failed for now.

    Only calls of idempotent tools are repeated, and only failures that say so (`ToolFailed.retry`).
    """

    attempts: int = 3
    """In all; 1: never again."""
    backoff: float = 0.5
    """Seconds before the second attempt; each further pause is twice as long."""
    longest: float = 30.0
    """Seconds that a pause has at most."""
    timeouts: bool = False
    """Whether a call that took too long is repeated as well. What was given up may still run."""

    def pause(self, attempt: int) -> float:
        """Seconds to wait after the failed attempt with this number, from 1."""
        return float(min(self.backoff * 2 ** min(attempt - 1, 32), self.longest))


_USUAL = Retry()


@dataclass(frozen=True, slots=True)
class ToolOverrides:
    """What may be said of one tool. None: as it is without."""

    permission: Permission | None = None
    confirm: Confirm | None = None
    timeout: float | None = None
    """Seconds of one attempt."""
    retry: Retry | None = None
    budget: int | None = None
    """Tokens of a result."""
    attempts: int | None = None
    """In place of those of `retry`."""
    backoff: float | None = None
    """Likewise."""
    outside: bool | None = None
    """Whether its results come from outside the network; None: what it gives by itself says so."""

    @property
    def repeated(self) -> Retry:
        """How its calls are repeated, if they may be."""
        retry = self.retry or _USUAL
        if self.attempts is None and self.backoff is None:
            return retry
        return replace(
            retry,
            attempts=self.attempts or retry.attempts,
            backoff=self.backoff or retry.backoff,
        )

    def over(self, other: ToolOverrides) -> ToolOverrides:
        """This one, and where it says nothing the other."""
        return ToolOverrides(
            permission=self.permission or other.permission,
            confirm=other.confirm if self.confirm is None else self.confirm,
            timeout=self.timeout or other.timeout,
            retry=self.retry or other.retry,
            budget=self.budget or other.budget,
            attempts=self.attempts or other.attempts,
            backoff=self.backoff or other.backoff,
            outside=other.outside if self.outside is None else self.outside,
        )


PermissionMode = Literal["read_only", "ask", "full"]


class Judged(Protocol):
    """What the decision depends on."""

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
    """The call may run."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call may not run, whoever asks."""

    reason: str


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """The call may run when a person has said so."""

    reason: str


Decision = Allow | Refuse | NeedsApproval


def decide(tool: Judged, mode: PermissionMode, *, outside: bool = False) -> Decision:
    """Whether a call of `tool` may run in `mode`. `outside`: its turn has read something from
    outside the network.
    """
    harmless = tool.permission == "read" or (tool.permission == "write" and tool.speaks)
    if mode == "read_only" and not harmless:
        return Refuse(f"{tool.name} changes things ({tool.permission}), and this agent only reads")
    if tool.confirm is True:
        return NeedsApproval(f"each call of {tool.name} must be approved by a person")
    if tool.confirm == "tainted" and outside:
        return NeedsApproval(f"{tool.name} {_TAINTED}")
    if mode == "ask" and not harmless:
        reason = f"{tool.name} changes things ({tool.permission}), and this agent must ask first"
        return NeedsApproval(reason)
    return Allow()


_TAINTED = "must be approved by a person in a turn that has read something from outside the network"


def told(mode: PermissionMode) -> str:
    """What a model should know of its mode; nothing where there is nothing to know."""
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
