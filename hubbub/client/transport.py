"""Transports for frames between a client and a hub. The client uses only these two protocols."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

from hubbub.errors import ConnectionLost
from hubbub.protocol.wire import Inlet, Outlet

__all__ = [
    "MemoryTransport",
    "Transport",
    "WebSocketTransport",
    "Wire",
]


if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.exceptions import ConnectionClosed


MAX_FRAME = 64 * 1024 * 1024
"""Limit for a frame from the hub; `ready` of a busy participant can have some MiB."""
CLOSE_WITHIN_S = 1.0
"""Seconds for the closing handshake."""
PING_EVERY_S, SILENT_S = 2.0, 4.0
"""With several hubs: seconds between pings, and without an answer until the next hub is tried."""
ABNORMAL = 1006
"""The close code of a connection that ended without a close frame."""


class Wire(Protocol):
    """One open connection."""

    async def send(self, *frames: str | bytes) -> None:
        """Send frames of JSON, in one write if possible. Raises `ConnectionLost`."""
        ...

    async def recv(self) -> bytes:
        """The next frame. Raises `ConnectionLost` with the close code at the end."""
        ...

    async def close(self) -> None:
        """End the connection; no effect if it has ended."""
        ...


class Transport(Protocol):
    """A way to reach one hub."""

    async def open(self) -> Wire:
        """A new connection. Raises `ConnectionLost`, or OSError if no hub is listening."""
        ...


class WebSocketTransport:
    """Frames over WebSocket: text, without compression."""

    def __init__(self, url: str, *others: str):
        """`url` is, for example, ws://127.0.0.1:4820. `others` are standby hubs; the one that
        answers is used."""
        self._urls = deque((url, *others))
        self._open_s, self._ping_s, self._pong_s = 10.0, 20.0, 20.0
        if others:
            self._open_s, self._ping_s, self._pong_s = SILENT_S, PING_EVERY_S, SILENT_S
        self._was_open = False

    @property
    def url(self) -> str:
        """The hub that answered last, or the next to try."""
        return self._urls[0]

    async def open(self) -> Wire:
        if self._was_open:  # and was lost: that hub may hang but still accept connections
            self._was_open = False
            self._urls.rotate(-1)
        for left in reversed(range(len(self._urls))):
            try:
                wire = await self._open()
            except (ConnectionLost, OSError):
                self._urls.rotate(-1)
                if not left:
                    raise
            else:
                self._was_open = True
                return wire
        raise AssertionError("there is a first address")

    async def _open(self) -> Wire:
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI

        try:
            connection = await connect(
                self.url,
                compression=None,
                proxy=None,  # a hub is local, or its address is explicit
                max_size=MAX_FRAME,
                close_timeout=CLOSE_WITHIN_S,
                open_timeout=self._open_s,
                ping_interval=self._ping_s,
                ping_timeout=self._pong_s,
            )
        except InvalidStatus as exc:
            if exc.response.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
                reason = (exc.response.body or b"").decode(errors="replace").strip()
                raise ConnectionLost(ABNORMAL, reason[:300] or str(exc)) from exc
            raise ConnectionLost(ABNORMAL, f"{self.url} is not a hub: {exc}") from exc
        except (InvalidHandshake, InvalidURI) as exc:
            raise ConnectionLost(ABNORMAL, f"{self.url} is not a hub: {exc}") from exc
        return _WebSocketWire(connection)


class _WebSocketWire:
    def __init__(self, connection: ClientConnection):
        from websockets.exceptions import ConnectionClosed

        self._connection = connection
        self._closed: type[ConnectionClosed] = ConnectionClosed

    async def send(self, *frames: str | bytes) -> None:
        connection = self._connection
        try:
            async with connection.send_context():
                for frame in frames:
                    data = frame.encode() if isinstance(frame, str) else frame
                    connection.protocol.send_text(data)
                # A write for each would be a system call, and often a wake-up of the hub, for each.
                connection.transport.write(b"".join(connection.protocol.data_to_send()))
        except self._closed as exc:
            raise _lost(exc) from exc

    async def recv(self) -> bytes:
        try:
            return await self._connection.recv(decode=False)
        except self._closed as exc:
            raise _lost(exc) from exc

    async def close(self) -> None:
        await self._connection.close()


def _lost(closed: ConnectionClosed) -> ConnectionLost:
    """The hub's close code if it sent one, otherwise this side's (frame too large, timeout)."""
    close = closed.rcvd or closed.sent
    return ConnectionLost(close.code, close.reason) if close else ConnectionLost(ABNORMAL)


class MemoryTransport:
    """Connects through `Hub.attach`, or any function of that signature.

    `attach` can raise OSError to simulate a hub that is not listening.
    """

    def __init__(self, attach: Callable[[Outlet], Inlet]):
        self._attach = attach

    async def open(self) -> Wire:
        outlet = _MemoryOutlet()
        outlet.inlet = self._attach(outlet)
        return _MemoryWire(outlet)


class _MemoryOutlet:
    """The hub's end, and the frames in flight to the client."""

    inlet: Inlet

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.ended: tuple[int, str] | None = None
        """Close code and reason."""
        self.changed = asyncio.Event()
        self._unsent = 0

    def write(self, frame: bytes) -> None:
        if self.ended is None:
            self.frames.append(frame)
            self._unsent += len(frame)
            self.changed.set()

    def close(self, code: int, reason: str) -> None:
        if self.ended is None:
            self.ended = (code, reason)
            self.changed.set()
            # As with a socket, the hub is notified of the loss later, never within its own call.
            asyncio.get_running_loop().call_soon(self._lose)

    def identified(self) -> None:
        """Nothing to do, as connections within a process are not counted."""

    def unsent(self) -> int:
        return self._unsent

    def take(self) -> bytes:
        frame = self.frames.popleft()
        self._unsent -= len(frame)
        if not self.frames:
            self.inlet.drained()
        return frame

    def _lose(self) -> None:
        self.inlet.lost()


class _MemoryWire:
    """The client's end."""

    def __init__(self, outlet: _MemoryOutlet):
        self._outlet = outlet

    async def send(self, *frames: str | bytes) -> None:
        for frame in frames:
            if self._outlet.ended is not None:
                raise ConnectionLost(*self._outlet.ended)
            self._outlet.inlet.receive(frame.encode() if isinstance(frame, str) else frame)

    async def recv(self) -> bytes:
        while not self._outlet.frames:
            if self._outlet.ended is not None:
                raise ConnectionLost(*self._outlet.ended)
            self._outlet.changed.clear()
            await self._outlet.changed.wait()
        return self._outlet.take()

    async def close(self) -> None:
        self._outlet.close(1000, "")
