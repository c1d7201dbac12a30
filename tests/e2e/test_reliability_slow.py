"""Clients that do not read cost the others nothing."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from benchmarks.wire import handshake, text_frame
from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Signal
from tests.e2e.support.hubs import NO_LIMIT, HubProcess, running_hub
from tests.e2e.support.traffic import Ledger, Stream, exchange, read, write


def _identify(participant: str, kind: str) -> bytes:
    frame = {"op": "identify", "version": "hubbub.v1", "participant": participant, "kind": kind}
    return text_frame(json.dumps(frame).encode())


class _Idle(asyncio.Protocol):
    """Joins, reads, and sends nothing."""

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
    """`count` participants `idle0`, `idle1`, ... that have joined and send nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count + 200), hard), hard))
    loop = asyncio.get_running_loop()
    peers: list[_Idle] = []
    try:
        for n in range(count):
            peer = _Idle(hub.port, f"idle{n}")
            await loop.create_connection(lambda peer=peer: peer, "127.0.0.1", hub.port)  # type: ignore[misc]
            peers.append(peer)
        for peer in peers:
            await peer.joined.wait()
        yield peers
    finally:
        for peer in peers:
            if peer.transport is not None:
                peer.transport.close()


class Mute:
    """A participant that has joined and stopped reading."""

    def __init__(self, connection: socket.socket, rest: bytes):
        self._connection, self._rest = connection, rest

    async def read_to_the_end(self) -> int | None:
        """Reads the rest; returns the close code, None if there was no close frame."""
        loop = asyncio.get_running_loop()
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # fast again
        data = bytearray(self._rest)
        try:
            while chunk := await loop.sock_recv(self._connection, 1 << 16):
                data += chunk
        except ConnectionResetError:
            pass  # the hub cut the connection; the data before that counts
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
    """Joins as `participant`, sends `frames` (see `text_frame`) and reads nothing after `ready`."""
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


pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

IDLE = 500
EXTRA_KIB = 4 * 1024
NAMES = ("ann", "bob", "cyd")
BIG = 60_000
IMPATIENT = {**NO_LIMIT, "unsent_for": 1}
"""The hub waits 1 s instead of 10 for a client that does not read."""


async def _join(hub: HubProcess, stack: AsyncExitStack, name: str) -> Client:
    return await stack.enter_async_context(Client(WebSocketTransport(hub.url), name, "human"))


async def _gone(client: Client, participant: str) -> None:
    """Waits for the signal that the participant is offline."""
    async for item in client.events():
        if isinstance(item, Signal) and item.type == "presence" and isinstance(item.data, dict):
            offline = item.data["offline"]
            assert isinstance(offline, list)
            if participant in offline:
                return


async def _converse(hub: HubProcess, ledger: Ledger, streams: list[Stream], count: int) -> None:
    """Sends `count` messages per stream while all read; returns when all have arrived."""
    async with AsyncExitStack() as stack:
        clients = {name: await _join(hub, stack, name) for name in NAMES}
        async with exchange(clients, streams, ledger, write):
            while min(len(ledger.acked[s.name]) for s in streams) < count:
                await ledger.more_acks(1)


async def _peak_with(folder: Path, *, reading: bool) -> int:
    """The hub's peak memory in KiB under load, while `mute` is away or does not read."""
    ledger = Ledger()
    streams = [Stream("ann", "bob+mute", BIG), Stream("bob", "all"), Stream("cyd", "ann")]
    async with running_hub(folder, limits=IMPATIENT) as hub, AsyncExitStack() as stack:
        watcher = await _join(hub, stack, "watcher")
        crowd = await stack.enter_async_context(idle_crowd(hub, IDLE))
        async with mute(hub, "mute") as silent:
            if not reading:
                # The hub waits a second for the reply to its close frame, then cuts the connection.
                closing = asyncio.create_task(_closing(watcher, silent))
                await _converse(hub, ledger, streams, 150)
                assert await closing == CloseCode.SLOW
        if reading:
            await _converse(hub, ledger, streams, 150)
        assert not any(peer.lost for peer in crowd), "an idle peer was disconnected"
        peak = hub.peak_kib()
        await _returns(hub, ledger, streams)
    return peak


async def _closing(watcher: Client, silent: Mute) -> int | None:
    """The close code that `mute` reads once the hub has dropped it."""
    await _gone(watcher, "mute")
    return await silent.read_to_the_end()


async def _returns(hub: HubProcess, ledger: Ledger, streams: list[Stream]) -> None:
    """`mute` comes back, reads, and gets every message."""
    before = ledger.disconnects
    async with AsyncExitStack() as stack:
        client = await _join(hub, stack, "mute")
        task = asyncio.create_task(read(client, ledger))
        await ledger.all_arrived(streams, ["mute"])
        task.cancel()
    ledger.check_readers(streams, ["mute"])
    assert ledger.disconnects == before, "a client that reads was closed for having much to read"


@pytest.mark.behaviour("R-4", "B-9")
async def test_a_peer_that_never_reads_disturbs_neither_others_nor_500_idle_peers(
    tmp_path: Path,
) -> None:
    folders = [tmp_path / "away", tmp_path / "mute"]
    for folder in folders:
        folder.mkdir()
    away = await _peak_with(folders[0], reading=True)
    mute = await _peak_with(folders[1], reading=False)
    assert mute - away <= EXTRA_KIB


async def test_a_peer_that_never_reads_its_results_is_closed_before_memory_grows(
    tmp_path: Path,
) -> None:
    ledger = Ledger()
    stream = Stream("ann", "mute", BIG)
    async with running_hub(tmp_path) as hub, AsyncExitStack() as stack:
        watcher = await _join(hub, stack, "watcher")
        async with mute(hub, "mute"):
            pass
        await _converse(hub, ledger, [stream], 100)
        before = hub.peak_kib()
        args = {"thread": "dm.ann.mute", "limit": 100}
        call = {"op": "call", "ref": "r", "name": "read_thread", "args": args}
        asked = text_frame(json.dumps(call).encode()) * 100
        gone = asyncio.create_task(_gone(watcher, "mute"))
        async with mute(hub, "mute", asked):
            await gone
        assert hub.peak_kib() - before <= 32 * 1024
