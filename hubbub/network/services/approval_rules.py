"""What holds for approvals, whoever keeps them: names, hashes, who may decide. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pydantic import JsonValue

from hubbub.config.models import NetworkFile
from hubbub.errors import OperationError
from hubbub.mods.operation import bad_request
from hubbub.network.caller import OPERATOR, Caller
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import Approval, RequestApproval

__all__ = [
    "approval_id",
    "approvers_of",
    "arguments_hash",
    "as_told",
    "check_arguments",
    "check_same",
    "may_decide",
    "may_see",
    "not_pending",
]

MOST_WRONG = 5
"""Mistakes that are told at once."""
_DIGITS = 12
"""Hex digits of an id: people type them."""


def approval_id(turn: str, call: str) -> str:
    """The approval of a call: the same whenever the turn asks for it again."""
    return "a" + hashlib.sha256(f"{turn}\0{call}".encode()).hexdigest()[:_DIGITS]


def arguments_hash(arguments: Mapping[str, JsonValue]) -> str:
    """SHA-256 (hex) of arguments in canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def approvers_of(file: NetworkFile, agent: str) -> tuple[str, ...]:
    """Who decides about the calls of an agent; nobody: the owners."""
    config = file.agents.get(agent)
    return tuple((config.approvers if config else ()) or file.network.approvals.approvers)


def may_decide(caller: Caller, approval: Approval) -> bool:
    """Whether the caller may approve or deny. Never an agent, nor a program."""
    if caller.kind != "human" and caller.participant != OPERATOR:
        return False
    return caller.participant in approval.approvers if approval.approvers else caller.owner


def may_see(caller: Caller, approval: Approval) -> bool:
    """Whether the caller may read it: who may decide, owners, and its agent."""
    own = caller.kind == "agent" and caller.participant == approval.agent
    return own or caller.owner or may_decide(caller, approval)


def as_told(caller: Caller, approval: Approval) -> Approval:
    """The approval as the caller is told it."""
    return approval.model_copy(update={"may_decide": may_decide(caller, approval)})


_ENDED = {
    "approved": "{by} has approved it",
    "denied": "{by} has denied it",
    "expired": "nobody decided in time",
    "cancelled": "its turn is over",
    "started": "it was approved by {by}, and its call has been started",
}


def not_pending(approval: Approval) -> OperationError:
    """What was done with an approval that can no longer be decided, or used."""
    ended = _ENDED.get(approval.state, "nobody has decided yet").format(by=approval.decided_by)
    told = approval.model_dump(
        mode="json", include={"state", "decided_by", "decided_at", "verdict"}, exclude_none=True
    )
    reason = f" ({approval.verdict})" if approval.verdict else ""
    text = f"approval {approval.id} is {approval.state}: {ended}{reason}"
    return OperationError(ErrorCode.NOT_PENDING, text, details=told)


def check_same(before: Approval, args: RequestApproval, hash: str) -> None:
    """Raises `OperationError` if another call has that name in the turn."""
    if (before.turn, before.call, before.tool) != (args.turn, args.call, args.tool) or (
        before.hash != hash
    ):
        text = f"call: approval {before.id} was asked for with another tool or other arguments"
        raise bad_request(text)


def check_arguments(schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> None:
    """Raises `OperationError` unless the arguments are what the tool's schema wants."""
    # They take long to import, and only who changes arguments needs them.
    from referencing.exceptions import Unresolvable

    from hubbub.protocol.rules import Rules, TooMuchWork

    try:
        found = Rules(schema).mistakes(dict(arguments))
    except (ValueError, TooMuchWork, Unresolvable, RecursionError) as error:
        raise bad_request(f"arguments: the tool's schema cannot be followed: {error}") from error
    if found:
        told = [f"{error.json_path}: {error.message[:200]}" for error in found[:MOST_WRONG]]
        raise bad_request(f"arguments: {'; '.join(told)}")
