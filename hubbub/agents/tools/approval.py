"""Approval of calls by a person: the interface, and asking through the hub."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol, assert_never

from pydantic import JsonValue

from hubbub.agents.tools.base import CallSite, ToolFailed
from hubbub.agents.tools.hub import hub_refusal
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
"""The approver's name, where it is not known."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that needs a person's approval. Its arguments are valid."""

    site: CallSite
    tool: str
    description: str
    permission: Permission
    arguments: Mapping[str, JsonValue]
    reason: str
    """Why approval is needed."""
    call_id: str = ""
    """Id of the call within its step."""
    schema: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))
    """The JSON Schema of its arguments."""


@dataclass(frozen=True, slots=True)
class Approved:
    """The call may run with these arguments, perhaps changed by the person; they are validated."""

    arguments: Mapping[str, JsonValue]
    start: Callable[[], Awaitable[None]] | None = None
    """Awaited right before the call runs, after its arguments were validated: this uses up the
    approval. Raises `ToolFailed` if it can no longer be used. None: approvals are not tracked."""
    by: str = A_PERSON
    """Who approved it."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The call was approved, and an earlier process started to run it with these arguments."""

    arguments: Mapping[str, JsonValue]
    by: str = A_PERSON


@dataclass(frozen=True, slots=True)
class Denied:
    """The call does not run; the model gets the reason."""

    reason: str
    error: Literal["denied", "expired", "cancelled"] = "denied"
    """The kind of failure."""


Verdict = Approved | Begun | Denied


class Parked(HubbubError):
    """There is no decision yet. The call has no result, and its turn is parked."""

    def __init__(self, *approvals: str):
        """The ids of the pending approvals."""
        self.approvals = approvals
        super().__init__(f"waits for {', '.join(approvals)}")


class Approver(Protocol):
    """Asks a person."""

    async def approve(self, call: ApprovalRequest) -> Verdict:
        """The person's decision. This may take long: only the turn's timeout limits it. An approver
        that is notified of the decision raises `Parked` instead of waiting.

        A resumed turn asks for the same `call.site` again; a person who has decided is not asked
        twice.
        """
        ...


# Asking people through the hub, which stores requests and decisions.


_LONGEST_NAME = 200
_MOST_WORDS = {"description": 4000, "reason": 1000}


class HubApprover:
    """An `Approver` that asks through the hub.

    Requesting the same call again returns its current state, so no state is kept here, and neither
    a restart of the agent nor one of the hub matters.
    """

    def __init__(self, client: Client):
        self._client = client

    async def approve(self, call: ApprovalRequest) -> Verdict:
        """As `Approver.approve`. Raises `Parked` while there is no decision, and `ToolFailed` if
        the hub refuses the request.
        """
        approval = await self._request(call)
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

    async def _request(self, call: ApprovalRequest) -> Approval:
        site = call.site
        answer = await self._call(
            "request_approval",
            turn=site.turn,
            call=_name(call),
            tool=call.tool,
            description=call.description[: _MOST_WORDS["description"]],
            arguments=dict(call.arguments),
            schema=dict(call.schema),
            reason=call.reason[: _MOST_WORDS["reason"]],
        )
        return Approval.model_validate(answer)

    async def _start(self, approval: str) -> None:
        await self._call("start_approved", id=approval)

    async def _call(self, operation: str, **args: JsonValue) -> JsonValue:
        try:
            return await self._client.call(operation, cid=None, **args)
        except ConnectionLost:
            raise Parked from None  # shutting down: another process continues the turn
        except OperationError as exc:
            if exc.code == ErrorCode.UNKNOWN_OPERATION:
                message = f"the network has no approvals, so it did not run: {exc.message}"
                raise ToolFailed(message, error="needs_approval") from exc
            raise hub_refusal(exc) from exc


def _name(call: ApprovalRequest) -> str:
    """The call's id within its turn, also if the model's own id is too long."""
    name = f"{call.site.step}:{call.call_id}"
    return name if len(name) <= _LONGEST_NAME else f"{call.site.step}:#{call.site.index}"


def _final(approval: Approval) -> dict[str, JsonValue]:
    return dict(approval.arguments if approval.final is None else approval.final)


def _decider(approval: Approval) -> str:
    return approval.decided_by or A_PERSON
