"""The two ends of a connection as the hub sees them, whatever carries the frames, and its states.

A socket server and the in-process transport both implement `Outlet` and hand what arrives to the
`Inlet` that `Hub.attach(outlet)` returns. Which frame is welcome in which state:

    CONNECTED --identify--> IDENTIFYING --ready--> READY --> CLOSED

A frame that the table does not list for a state is answered with the error beside it; the state
stays as it is.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from hubbub.protocol.codes import ErrorCode

__all__ = [
    "WELCOME",
    "Inlet",
    "Outlet",
    "SessionState",
    "complaint",
]


class Outlet(Protocol):
    """Where the hub writes to. No method blocks or raises; a closed outlet swallows what comes."""

    def write(self, frame: bytes) -> None:
        """Queue one complete frame. Frames of one pass of the loop may leave together."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Close after what was written before."""
        ...

    def identified(self) -> None:
        """The peer has said, and proved, who it is: it is no stranger any more."""
        ...

    def unsent(self) -> int:
        """Bytes that the peer has not accepted yet."""
        ...


class Inlet(Protocol):
    """Where the peer's frames go. All methods are called from the loop's thread."""

    def receive(self, frame: bytes) -> None: ...

    def drained(self) -> None:
        """The peer has accepted what was written, or most of it: more may be written."""
        ...

    def lost(self) -> None:
        """The peer is gone. Called once; nothing is received after it."""
        ...


class SessionState(Enum):
    CONNECTED = auto()
    """Open, not identified yet."""
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
