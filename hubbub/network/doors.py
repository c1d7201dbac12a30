"""Doors on the hub's port: requests for some paths are another protocol's business.

The first line of a connection says which: all that is no door's goes to the hub as if nobody had
looked. A hub without doors does not look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeAlias

__all__ = ["Doors", "PathSwitch"]

Doors: TypeAlias = Mapping[str, Callable[[], asyncio.Protocol]]
"""By the first part of the path (`/mcp`): makes the protocol of a connection."""
_MOST = 8192
"""Bytes in which the first line must end."""
_WITHIN_S = 10.0
"""Seconds that it may take to come."""


class PathSwitch(asyncio.Protocol):
    """One connection, until its first line is there."""

    def __init__(self, usual: Callable[[], asyncio.Protocol], doors: Doors):
        self._usual, self._doors = usual, doors
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_WITHIN_S, transport.abort)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if b"\n" not in self._head and len(self._head) < _MOST:
            return
        self._timer.cancel()
        protocol = self._doors.get(self._place, self._usual)()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(self._head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()

    @property
    def _place(self) -> str:
        """The first part of the path that is asked for."""
        words = self._head.split(b"\n", 1)[0].split(b" ")
        path = words[1].partition(b"?")[0].decode("latin-1") if len(words) == 3 else ""
        return "/" + path.lstrip("/").partition("/")[0]
