"""The two ends of a connection as the hub sees them, whatever carries the frames.

A socket server and the in-process transport both implement `Outlet` and hand what arrives to the
`Inlet` that `Hub.attach(outlet)` returns.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Inlet", "Outlet"]


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
