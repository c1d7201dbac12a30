"""Approvals, stops and take-overs for the tests of the chat."""

from __future__ import annotations

from datetime import UTC, datetime

from hubbub.protocol.control import Approval, BreakerState, Stopped, StopScope, Takeover

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def approval(id: str = "a1", **more: object) -> Approval:
    """Bob asks to delete a file; ann may decide."""
    told: dict[str, object] = {
        "id": id,
        "agent": "bob",
        "turn": "bob-m4",
        "thread_id": "channel.general",
        "call": "1.c1",
        "tool": "delete_file",
        "arguments": {"path": "a.txt"},
        "hash": "0" * 64,
        "may_decide": True,
        "asked_at": NOON,
        "expires_at": NOON,
        "state": "pending",
    }
    return Approval.model_validate({**told, **more})


def stopped(scope: StopScope, target: str | None = None, by: str = "eve") -> Stopped:
    return Stopped(scope=scope, target=target, by=by, reason="too loud", at=NOON)


def latched(thread: str) -> BreakerState:
    return BreakerState(thread_id=thread, at=NOON, turns=61, within_s=60)


def takeover(agent: str, by: str) -> Takeover:
    return Takeover(agent=agent, by=by, until=NOON)
