"""The port through which a person is asked whether a call may run, and the hub behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol, assert_never

from pydantic import JsonValue

from hubbub.agents.tools.base import CallSite, ToolFailed
from hubbub.agents.tools.hub import refused
from hubbub.client import Client
from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import Approval
from hubbub.protocol.messages import Permission

__all__ = [
    "ApprovalRequest",
    "Approved",
    "Approver",
    "Begun",
    "Denied",
    "HubApprover",
    "Parked",
    "Verdict",
]

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


# Asks people through the hub, which keeps what is asked and what they say.


_LONGEST_NAME = 200
_MOST_WORDS = {"description": 4000, "reason": 1000}


class HubApprover:
    """An `Approver` whose answers come from the hub.

    Asking for the same call again tells how it stands by then, so nothing is kept here: neither a
    restart of the agent nor one of the hub makes a difference.
    """

    def __init__(self, client: Client):
        self._client = client

    async def approve(self, call: ApprovalRequest) -> Verdict:
        """As `Approver.approve`. Raises `Parked` while nobody has decided, and `ToolFailed` where
        the hub does not take the question.
        """
        approval = await self._asked(call)
        match approval.state:
            case "pending":
                raise Parked(approval.id)
            case "approved":
                start = partial(self._start, approval.id)
                return Approved(_final(approval), start, _decider(approval))
            case "started":
                return Begun(_final(approval), _decider(approval))
            case "denied" | "expired" | "cancelled" as state:
                return Denied(approval.verdict, state)
            case _:
                assert_never(approval.state)

    async def _asked(self, call: ApprovalRequest) -> Approval:
        site = call.site
        told = await self._call(
            "request_approval",
            turn=site.turn,
            call=_name(call),
            tool=call.tool,
            description=call.description[: _MOST_WORDS["description"]],
            arguments=dict(call.arguments),
            schema=dict(call.schema),
            reason=call.reason[: _MOST_WORDS["reason"]],
        )
        return Approval.model_validate(told)

    async def _start(self, approval: str) -> None:
        await self._call("start_approved", id=approval)

    async def _call(self, operation: str, **args: JsonValue) -> JsonValue:
        try:
            return await self._client.call(operation, cid=None, **args)
        except ConnectionLost:
            raise Parked from None  # nobody is there to tell: the turn goes on in another process
        except OperationError as exc:
            if exc.code == ErrorCode.UNKNOWN_OPERATION:
                words = f"nobody can be asked here, so it has not run: {exc.message}"
                raise ToolFailed(words, error="needs_approval") from exc
            raise refused(exc) from exc


def _name(call: ApprovalRequest) -> str:
    """What the call is called within its turn, also when a model gives it an endless id."""
    name = f"{call.site.step}:{call.call_id}"
    return name if len(name) <= _LONGEST_NAME else f"{call.site.step}:#{call.site.index}"


def _final(approval: Approval) -> dict[str, JsonValue]:
    return dict(approval.arguments if approval.final is None else approval.final)


def _decider(approval: Approval) -> str:
    return approval.decided_by or A_PERSON
