"""Doors on the hub's port: other protocols that serve certain paths.

The first line of each request decides. Requests without a door reach the hub unchanged, and a hub
without doors skips the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from hubbub.network.limits import ConnectionCount

__all__ = ["Door", "Doors", "PathSwitch"]

Door: TypeAlias = Callable[[Callable[[], None]], asyncio.Protocol]
Doors: TypeAlias = Mapping[str, Door]
"""By the first part of the path (`/mcp`): a factory of protocols for one request on a connection.
Its argument is a callback for when the request is answered and the connection is ready for
another."""
_MAX_HEAD = 8192
"""Maximum length of the first line, in bytes."""
_WITHIN_S, _IDLE_S = 10.0, 75.0
"""Seconds for the first line to arrive, and for the next request to begin. The latter exceeds the
minute that proxies keep a connection, so that the proxy closes it."""
_REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%b\n"
)


class PathSwitch(asyncio.Protocol):
    """Handles a connection until the first line of a request, and again after each answer of a
    door. The hub's own requests leave it for good.

    A connection with requests to doors counts as unidentified to its end, as each such request
    authenticates by itself.
    """

    def __init__(
        self,
        usual: Callable[[], asyncio.Protocol],
        doors: Doors,
        count: ConnectionCount,
        idle: set[asyncio.Transport],
    ):
        """`idle` collects the connections that wait for another request, to be closed at the
        end."""
        self._usual, self._doors, self._count, self._idle = usual, doors, count, idle
        self._head, self._address = b"", ""
        self._door: asyncio.Protocol | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport is not a subclass of asyncio's.
        self._transport = transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        self._wait(_WITHIN_S)
        refusal = self._count.enter(self._address)
        if refusal is not None:
            transport.write(_REFUSED % (len(refusal) + 1, refusal.encode()))
            transport.close()

    def _wait(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._transport.abort)

    def _answered(self) -> None:
        self._door, self._head = None, b""
        self._idle.add(self._transport)
        self._wait(_IDLE_S)

    def data_received(self, data: bytes) -> None:
        if self._door is not None:
            self._door.data_received(data)
            return
        self._head += data
        if self._transport.is_closing():
            return
        if b"\n" not in self._head and len(self._head) < _MAX_HEAD:
            if self._transport in self._idle:
                self._idle.discard(self._transport)
                self._timer.cancel()
                self._wait(_WITHIN_S)
            return
        self._idle.discard(self._transport)
        self._timer.cancel()
        door = self._doors.get(self._place)
        if door is None:  # the connection counts itself from here on
            self._count.leave(self._address, stranger=True)
            usual = self._usual()
            self._transport.set_protocol(usual)
            usual.connection_made(self._transport)
            usual.data_received(self._head)
        else:
            self._door = door(self._answered)
            self._door.connection_made(self._transport)
            self._door.data_received(self._head)

    def eof_received(self) -> bool | None:
        return None if self._door is None else self._door.eof_received()

    def pause_writing(self) -> None:
        if self._door is not None:
            self._door.pause_writing()

    def resume_writing(self) -> None:
        if self._door is not None:
            self._door.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._idle.discard(self._transport)
        self._timer.cancel()
        self._count.leave(self._address, stranger=True)
        if self._door is not None:
            self._door.connection_lost(exc)

    @property
    def _place(self) -> str:
        words = self._head.split(b"\n", 1)[0].split(b" ")
        path = words[1].partition(b"?")[0].decode("latin-1") if len(words) == 3 else ""
        return "/" + path.lstrip("/").partition("/")[0]
