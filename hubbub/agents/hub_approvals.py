"""Asks people through the hub, which keeps what is asked and what they say."""

from __future__ import annotations

from functools import partial
from typing import assert_never

from pydantic import JsonValue

from hubbub.agents.tools.approval import (
    A_PERSON,
    ApprovalRequest,
    Approved,
    Begun,
    Denied,
    Parked,
    Verdict,
)
from hubbub.agents.tools.base import ToolFailed
from hubbub.agents.tools.hub import refused
from hubbub.client import Client
from hubbub.errors import ConnectionLost, OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import Approval

__all__ = ["HubApprover"]

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
