"""Rules of approvals: ids, hashes, and who can decide. Pure."""

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
    "check_arguments",
    "check_same",
    "may_decide",
    "may_see",
    "not_pending",
    "shown_to",
]

MAX_MISTAKES = 5
"""Mistakes reported at once."""
_DIGITS = 12
"""Hex digits of an id; few, as people type them."""


def approval_id(turn: str, call: str) -> str:
    """The id of a call's approval, which is the same each time the turn asks for it."""
    return "a" + hashlib.sha256(f"{turn}\0{call}".encode()).hexdigest()[:_DIGITS]


def arguments_hash(arguments: Mapping[str, JsonValue]) -> str:
    """SHA-256 (hex) of arguments in canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def approvers_of(file: NetworkFile, agent: str) -> tuple[str, ...]:
    """The people who decide about the agent's calls; empty for the owners."""
    config = file.agents.get(agent)
    return tuple((config.approvers if config else ()) or file.network.approvals.approvers)


def may_decide(caller: Caller, approval: Approval) -> bool:
    """Whether the caller can approve or deny, which no agent or program can."""
    if caller.kind != "human" and caller.participant != OPERATOR:
        return False
    return caller.participant in approval.approvers if approval.approvers else caller.owner


def may_see(caller: Caller, approval: Approval) -> bool:
    """Whether the caller can read it: approvers, owners, and its agent."""
    own = caller.kind == "agent" and caller.participant == approval.agent
    return own or caller.owner or may_decide(caller, approval)


def shown_to(caller: Caller, approval: Approval) -> Approval:
    """The approval as shown to the caller."""
    return approval.model_copy(update={"may_decide": may_decide(caller, approval)})


_ENDED = {
    "approved": "{by} approved it",
    "denied": "{by} denied it",
    "expired": "no one decided in time",
    "cancelled": "its turn has ended",
    "started": "{by} approved it, and its call has started",
}


def not_pending(approval: Approval) -> OperationError:
    """The error for an approval that can no longer be decided or used."""
    ended = _ENDED.get(approval.state, "no one has decided yet").format(by=approval.decided_by)
    details = approval.model_dump(
        mode="json", include={"state", "decided_by", "decided_at", "verdict"}, exclude_none=True
    )
    reason = f" ({approval.verdict})" if approval.verdict else ""
    text = f"approval {approval.id} is {approval.state}: {ended}{reason}"
    return OperationError(ErrorCode.NOT_PENDING, text, details=details)


def check_same(before: Approval, args: RequestApproval, hash: str) -> None:
    """Raises `OperationError` if the turn used the call's id for something else."""
    if (before.turn, before.call, before.tool) != (args.turn, args.call, args.tool) or (
        before.hash != hash
    ):
        text = f"call: approval {before.id} was requested with another tool or other arguments"
        raise bad_request(text)


def check_arguments(schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> None:
    """Raises `OperationError` unless the arguments match the tool's schema."""
    # Slow to import, and only needed when arguments are edited.
    from referencing.exceptions import Unresolvable

    from hubbub.protocol.rules import Rules, TooMuchWork

    try:
        mistakes = Rules(schema).mistakes(dict(arguments))
    except (ValueError, TooMuchWork, Unresolvable, RecursionError) as error:
        raise bad_request(f"arguments: the tool's schema cannot be applied: {error}") from error
    if mistakes:
        texts = [f"{error.json_path}: {error.message[:200]}" for error in mistakes[:MAX_MISTAKES]]
        raise bad_request(f"arguments: {'; '.join(texts)}")
