"""The load program's connections: an asyncio protocol each, no coroutine per message."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import Literal, cast

from pydantic import JsonValue

from benchmarks.wire import PONG, Splitter, handshake, header, text_frame

__all__ = ["Alarm", "Socket", "identify", "open_socket"]

Kind = Literal["agent", "human", "service"]


class Alarm:
    """Where a connection reports that the run is void. The first report counts."""

    def __init__(self) -> None:
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def raise_it(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    async def sleep(self, seconds: float) -> None:
        """Wait, but raise at once what any connection reports."""
        await asyncio.wait({self._failure}, timeout=seconds)
        if self._failure.done():
            await self._failure


class Socket(asyncio.Protocol):
    """A WebSocket to a server of this machine. Frames go to `receive`, which others may set."""

    transport: asyncio.Transport

    def __init__(self, alarm: Alarm) -> None:
        self.receive: Callable[[bytes], None] = self._keep
        self.closing = False
        self._alarm = alarm
        self._splitter = Splitter()
        self._response: bytes | None = b""
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._kept: deque[bytes] = deque()
        self._arrival = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it

    def data_received(self, data: bytes) -> None:
        if self._response is not None:
            data = self._handshake(self._response + data)
        try:
            for payload in self._splitter.feed(data):
                self.receive(payload)
        except Exception as error:  # noqa: BLE001  # a callback of the loop: nobody above could catch it
            self._alarm.raise_it(error)
        if self._splitter.pings:
            self._pong()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closing:
            self._alarm.raise_it(exc or ConnectionError("the server closed a connection"))

    def write(self, frame: bytes) -> None:
        self.transport.write(frame)

    def close(self) -> None:
        """Drop the connection, which is no failure."""
        self.closing = True
        self.transport.abort()

    async def next_frame(self) -> dict[str, JsonValue]:
        """The next frame as JSON, while `receive` is left as it was."""
        while not self._kept:
            self._arrival.clear()
            await self._arrival.wait()
        frame: dict[str, JsonValue] = json.loads(self._kept.popleft())
        return frame

    async def opened(self, request: bytes) -> None:
        """Send the opening request and wait for the answer."""
        self.write(request)
        await self._opened

    def _handshake(self, response: bytes) -> bytes:
        head, found, rest = response.partition(b"\r\n\r\n")
        if not found:
            self._response = response
            return b""
        self._response = None
        if b" 101 " in head.partition(b"\r\n")[0]:
            self._opened.set_result(None)
        else:
            self._opened.set_exception(ConnectionError(head.decode(errors="replace")))
        return rest

    def _keep(self, payload: bytes) -> None:
        self._kept.append(payload)
        self._arrival.set()

    def _pong(self) -> None:
        for payload in self._splitter.pings:
            self.write(header(len(payload), PONG) + payload)
        self._splitter.pings.clear()


async def open_socket(port: int, path: str, alarm: Alarm) -> Socket:
    """An open WebSocket."""
    loop = asyncio.get_running_loop()
    _, socket = await loop.create_connection(lambda: Socket(alarm), "127.0.0.1", port)
    await socket.opened(handshake(port, path))
    return socket


async def identify(socket: Socket, participant: str, kind: Kind, token: str) -> None:
    """Join the hub on the other end; what comes after `ready` is kept for `next_frame`.

    Raises ConnectionError if the hub refuses.
    """
    hello = await socket.next_frame()
    versions = hello["versions"]
    assert isinstance(versions, list)
    joining = {"op": "identify", "version": versions[0], "participant": participant}
    payload = json.dumps(joining | {"kind": kind, "token": token}).encode()
    socket.write(text_frame(payload))
    while (answer := await socket.next_frame())["op"] != "ready":
        if answer["op"] == "error":
            raise ConnectionError(f"{participant} was refused: {answer}")
