"""The state of a session as a table: which frame is welcome when, and where it leads.

    CONNECTED --identify--> IDENTIFYING --ready--> READY --> CLOSED

A frame that the table does not list for a state is answered with the error beside it; the state
stays as it is.
"""

from __future__ import annotations

from enum import Enum, auto

from hubbub.protocol.codes import ErrorCode

__all__ = ["WELCOME", "SessionState", "complaint"]


class SessionState(Enum):
    CONNECTED = auto()
    """Open, nobody yet."""
    IDENTIFYING = auto()
    """`identify` is being checked."""
    READY = auto()
    CLOSED = auto()


WELCOME: dict[SessionState, frozenset[str]] = {
    SessionState.CONNECTED: frozenset({"identify"}),
    SessionState.IDENTIFYING: frozenset(),
    SessionState.READY: frozenset({"call", "ack", "signal"}),
    SessionState.CLOSED: frozenset(),
}


def complaint(state: SessionState, op: str) -> tuple[ErrorCode, str] | None:
    """Why `op` is not welcome in `state`; None if it is."""
    if op in WELCOME[state]:
        return None
    if op == "identify":
        return ErrorCode.ALREADY_IDENTIFIED, "this socket has identified already"
    if state is SessionState.IDENTIFYING:
        return ErrorCode.NOT_IDENTIFIED, f"wait for `ready` before `{op}`"
    return ErrorCode.NOT_IDENTIFIED, f"send `identify` before `{op}`"
