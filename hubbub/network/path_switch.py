"""Doors on the hub's port: requests for some paths are another protocol's business.

The first line of each request says which: all that is no door's goes to the hub as if nobody had
looked. A hub without doors does not look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from hubbub.network.limits import ConnectionCount

__all__ = ["Door", "Doors", "PathSwitch"]

Door: TypeAlias = Callable[[Callable[[], None]], asyncio.Protocol]
Doors: TypeAlias = Mapping[str, Door]
"""By the first part of the path (`/mcp`): makes what speaks one request of a connection. It is
given what to call when that is answered, and another may come on the connection."""
_MOST = 8192
"""Bytes in which the first line must end."""
_WITHIN_S, _IDLE_S = 10.0, 75.0
"""Seconds that it may take to come, and to begin after an answer: longer than the minute for which
proxies hold a connection, so that it is they who close it."""
_REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%b\n"
)


class PathSwitch(asyncio.Protocol):
    """One connection: until the first line of a request is there, and again after each answer of a
    door. The hub's own requests it leaves for good.

    It counts as all others do, for a door's to the end as a stranger's: who asks there says so with
    each request.
    """

    def __init__(
        self,
        usual: Callable[[], asyncio.Protocol],
        doors: Doors,
        count: ConnectionCount,
        idle: set[asyncio.Transport],
    ):
        """`idle`: connections that wait for another request; they are to be closed at the end."""
        self._usual, self._doors, self._count, self._idle = usual, doors, count, idle
        self._head, self._address = b"", ""
        self._door: asyncio.Protocol | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is no subclass of asyncio's.
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
        if b"\n" not in self._head and len(self._head) < _MOST:
            if self._transport in self._idle:
                self._idle.discard(self._transport)
                self._timer.cancel()
                self._wait(_WITHIN_S)
            return
        self._idle.discard(self._transport)
        self._timer.cancel()
        made = self._doors.get(self._place)
        if made is None:  # it counts by itself from here on
            self._count.leave(self._address, stranger=True)
            usual = self._usual()
            self._transport.set_protocol(usual)
            usual.connection_made(self._transport)
            usual.data_received(self._head)
        else:
            self._door = made(self._answered)
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
