"""A hub in the same process: frames change hands without a socket."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from hubbub.client.transport import Wire
from hubbub.errors import ConnectionLost
from hubbub.protocol.wire import Inlet, Outlet

__all__ = ["MemoryTransport"]


class MemoryTransport:
    """Connects through `Hub.attach`, or anything else of that shape.

    `attach` may raise OSError to play a hub that does not listen.
    """

    def __init__(self, attach: Callable[[Outlet], Inlet]):
        self._attach = attach

    async def open(self) -> Wire:
        outlet = _MemoryOutlet()
        outlet.inlet = self._attach(outlet)
        return _MemoryWire(outlet)


class _MemoryOutlet:
    """The hub's end, and the frames on their way to the client."""

    inlet: Inlet

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.ended: tuple[int, str] | None = None
        """Close code and reason."""
        self.news = asyncio.Event()
        self._unsent = 0

    def write(self, frame: bytes) -> None:
        if self.ended is None:
            self.frames.append(frame)
            self._unsent += len(frame)
            self.news.set()

    def close(self, code: int, reason: str) -> None:
        if self.ended is None:
            self.ended = (code, reason)
            self.news.set()
            # As with a socket: the hub hears of the loss later, never inside its own call.
            asyncio.get_running_loop().call_soon(self._lose)

    def identified(self) -> None:
        """Nobody counts connections within a process."""

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

    async def send(self, frame: str | bytes) -> None:
        if self._outlet.ended is not None:
            raise ConnectionLost(*self._outlet.ended)
        self._outlet.inlet.receive(frame.encode() if isinstance(frame, str) else frame)

    async def recv(self) -> bytes:
        while not self._outlet.frames:
            if self._outlet.ended is not None:
                raise ConnectionLost(*self._outlet.ended)
            self._outlet.news.clear()
            await self._outlet.news.wait()
        return self._outlet.take()

    async def close(self) -> None:
        self._outlet.close(1000, "")
