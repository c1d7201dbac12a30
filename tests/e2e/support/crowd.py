"""Peers that cost the test next to nothing: many that say nothing, and one that does not read."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from benchmarks.wire import handshake, text_frame
from tests.e2e.support.hubs import HubProcess

__all__ = ["Mute", "idle_crowd", "mute"]


def _identify(participant: str, kind: str) -> bytes:
    frame = {"op": "identify", "version": "hubbub.v1", "participant": participant, "kind": kind}
    return text_frame(json.dumps(frame).encode())


class _Idle(asyncio.Protocol):
    """Joins, takes what comes, says nothing."""

    def __init__(self, port: int, participant: str):
        self.joined = asyncio.Event()
        self.lost = False
        self._port, self._participant = port, participant
        self._head = b""
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(handshake(self._port, "/"))
        transport.write(_identify(self._participant, "human"))

    def data_received(self, data: bytes) -> None:
        if not self.joined.is_set():
            self._head += data
            if b'"op":"ready"' in self._head:
                self._head = b""
                self.joined.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


@asynccontextmanager
async def idle_crowd(hub: HubProcess, count: int) -> AsyncIterator[Sequence[_Idle]]:
    """So many participants `idle0`, `idle1`, ... who have joined and say nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count + 200), hard), hard))
    loop = asyncio.get_running_loop()
    peers: list[_Idle] = []
    try:
        for n in range(count):
            one = _Idle(hub.port, f"idle{n}")
            await loop.create_connection(lambda one=one: one, "127.0.0.1", hub.port)  # type: ignore[misc]
            peers.append(one)
        for one in peers:
            await one.joined.wait()
        yield peers
    finally:
        for one in peers:
            if one.transport is not None:
                one.transport.close()


class Mute:
    """A participant who has joined and does not read any more."""

    def __init__(self, connection: socket.socket, rest: bytes):
        self._connection, self._rest = connection, rest

    async def read_to_the_end(self) -> int | None:
        """Read what is left; returns the close code, None if there was no close frame."""
        loop = asyncio.get_running_loop()
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # fast again
        data = bytearray(self._rest)
        try:
            while chunk := await loop.sock_recv(self._connection, 1 << 16):
                data += chunk
        except ConnectionResetError:
            pass  # cut off: what came before it counts
        return _close_code(bytes(data))


def _close_code(data: bytes) -> int | None:
    at = 0
    while at + 4 <= len(data):
        opcode, size = data[at] & 0x0F, data[at + 1] & 0x7F
        start = at + 2
        if size == 126:
            start, size = at + 4, int.from_bytes(data[at + 2 : at + 4], "big")
        elif size == 127:
            start, size = at + 10, int.from_bytes(data[at + 2 : at + 10], "big")
        if opcode == 0x8:
            return int.from_bytes(data[start : start + 2], "big")
        at = start + size
    return None


@asynccontextmanager
async def mute(hub: HubProcess, participant: str, frames: bytes = b"") -> AsyncIterator[Mute]:
    """Join as `participant`, send `frames` (see `text_frame`), and read nothing after `ready`."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        await loop.sock_connect(connection, ("127.0.0.1", hub.port))
        await loop.sock_sendall(connection, handshake(hub.port, "/"))
        await loop.sock_sendall(connection, _identify(participant, "human"))
        data = b""
        while b'"op":"ready"' not in data:
            data += await loop.sock_recv(connection, 1 << 16)
        await loop.sock_sendall(connection, frames)
        yield Mute(connection, data[data.index(b"\r\n\r\n") + 4 :])
