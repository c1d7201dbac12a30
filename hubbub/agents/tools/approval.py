"""The port through which a person is asked whether a call may run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

from pydantic import JsonValue

from hubbub.agents.tools.base import CallSite
from hubbub.errors import HubbubError
from hubbub.protocol.messages import Permission

__all__ = ["ApprovalRequest", "Approved", "Approver", "Begun", "Denied", "Parked", "Verdict"]

A_PERSON = "a person"
"""Who has decided, where an approver does not say."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that waits for a person. Its arguments are valid."""

    site: CallSite
    tool: str
    description: str
    permission: Permission
    arguments: Mapping[str, JsonValue]
    reason: str
    """Why a person must be asked."""
    call_id: str = ""
    """Of the call within its step."""
    schema: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))
    """The JSON Schema of its arguments."""


@dataclass(frozen=True, slots=True)
class Approved:
    """The call may run with these arguments, which the person may have changed; they are validated
    again.
    """

    arguments: Mapping[str, JsonValue]
    start: Callable[[], Awaitable[None]] | None = None
    """Is awaited right before the call runs, when its arguments have proved valid: from then on
    the approval is used. Raises `ToolFailed` when it cannot be used any more. None: nobody keeps
    count of it."""
    by: str = A_PERSON
    """Whose word it is."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The call was approved, and has begun to run with these arguments in an earlier process."""

    arguments: Mapping[str, JsonValue]
    by: str = A_PERSON


@dataclass(frozen=True, slots=True)
class Denied:
    """The call does not run. The model is told the reason."""

    reason: str
    error: Literal["denied", "expired", "cancelled"] = "denied"
    """The kind of failure."""


Verdict = Approved | Begun | Denied


class Parked(HubbubError):
    """Nobody has decided yet. The call has no result, and its turn waits without running."""

    def __init__(self, *approvals: str):
        """The ids of what is waited for."""
        self.approvals = approvals
        super().__init__(f"waits for {', '.join(approvals)}")


class Approver(Protocol):
    """Asks a person."""

    async def approve(self, call: ApprovalRequest) -> Verdict:
        """The person's word. It may take long: only the turn's own time bounds it. An approver
        that knows when the answer comes raises `Parked` instead of waiting for it.

        A turn that is taken up again asks for the same `call.site` again; who has answered is not
        asked twice.
        """
        ...
