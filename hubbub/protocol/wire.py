"""The two ends of a connection from the hub's view, for any transport, and its states.

A socket server and the in-process transport both implement `Outlet`, and pass received frames to
the `Inlet` that `Hub.attach(outlet)` returns. The table defines which frames each state allows:

    CONNECTED --identify--> IDENTIFYING --ready--> READY --> CLOSED

Any other frame is answered with an error, and the state does not change.
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
    """The hub's outgoing end. No method blocks or raises; a closed outlet drops all frames."""

    def write(self, frame: bytes) -> None:
        """Queue one complete frame. Frames of one iteration of the loop can leave together."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Close after everything already written."""
        ...

    def identified(self) -> None:
        """The peer has identified and was admitted."""
        ...

    def unsent(self) -> int:
        """Bytes that the peer has not accepted yet."""
        ...


class Inlet(Protocol):
    """The receiver of the peer's frames. All methods are called from the loop's thread."""

    def receive(self, frame: bytes) -> None: ...

    def drained(self) -> None:
        """The peer has accepted most of what was written, so there is room for more."""
        ...

    def lost(self) -> None:
        """The connection has ended. Called once; nothing is received after it."""
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
    """The error for `op` in `state`; None if it is allowed."""
    if op in WELCOME[state]:
        return None
    if op == "identify":
        return ErrorCode.ALREADY_IDENTIFIED, "this socket has already identified"
    if state is SessionState.IDENTIFYING:
        return ErrorCode.NOT_IDENTIFIED, f"wait for `ready` before `{op}`"
    return ErrorCode.NOT_IDENTIFIED, f"send `identify` before `{op}`"
