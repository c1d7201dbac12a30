"""The port through which a person is asked whether a call may run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from hubbub.agents.tools.base import CallSite
from hubbub.protocol.messages import Permission

__all__ = ["ApprovalRequest", "Approved", "Approver", "Denied", "Verdict"]


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


@dataclass(frozen=True, slots=True)
class Approved:
    """The call may run with these arguments, which the person may have changed; they are validated
    again.
    """

    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Denied:
    """The call does not run. The model is told the reason."""

    reason: str


Verdict = Approved | Denied


class Approver(Protocol):
    """Asks a person."""

    async def approve(self, call: ApprovalRequest) -> Verdict:
        """The person's word. It may take long: only the turn's own time bounds it.

        A turn that is taken up again asks for the same `call.site` again; who has answered is not
        asked twice.
        """
        ...
