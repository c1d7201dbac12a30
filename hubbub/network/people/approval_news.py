"""Who is told about approvals: those whom they concern by signals, all others by a notice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import JsonValue

from hubbub.network.people.verdicts import as_told, may_see, owners_of
from hubbub.protocol.control import Approval
from hubbub.protocol.frames import Signal

if TYPE_CHECKING:
    from hubbub.network.hub import Hub
    from hubbub.network.session import Session

__all__ = ["announce", "tell"]


def tell(session: Session, approval: Approval) -> None:
    """Signal how it stands, if the session's participant may read it.

    Not whispered: an agent whose turn is parked goes on by it.
    """
    caller = session.caller
    if caller is not None and may_see(caller, approval):
        data = as_told(caller, approval).model_dump(mode="json", exclude_none=True)
        signal = Signal(type="approval", sender="hub", data=data)
        session.write(signal.model_dump_json(exclude_none=True).encode())


def announce(hub: Hub, approval: Approval) -> None:
    """One notice where the turn works. It says nothing of the arguments: others read it too."""
    whom = approval.approvers or owners_of(hub.file)
    waits = f"It waits for {' or '.join(whom)}" if whom else "It waits for an owner"
    text = f"{approval.agent} asks to run {approval.tool}. {waits}; see approvals."
    details: dict[str, JsonValue] = {
        "code": "approval",
        "approval": approval.id,
        "agent": approval.agent,
        "turn": approval.turn,
        "tool": approval.tool,
    }
    # Should a mod let nobody say it, who may decide is told all the same.
    hub.writes.notice(approval.thread_id, text, details, f"approval:{approval.id}", to=whom)
