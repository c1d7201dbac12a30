"""Behaviour that needs a real socket: heartbeats, slow readers, HTTP, malformed frames."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.typing import Origin

from hubbub.client.transport import WebSocketTransport
from hubbub.config.models import NetworkFile
from hubbub.errors import ConnectionLost, StoreUnavailable, UserError
from hubbub.network import readiness, server
from hubbub.network.hub import Hub
from hubbub.network.server import Listening, serve_hub
from hubbub.network.store import open_store
from hubbub.web.site import About, Site
from tests.contract.full_disk import full_disk
from tests.interaction.peers import DEADLINE_S, Networks, config, eventually, soon
from tests.interaction.stores import MoodyStore

HELLO = b'{"op":"identify","version":"hubbub.v1","participant":"ann","kind":"human"}'


@pytest.fixture(autouse=True)
def _watch_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub checks its sockets every 10 ms instead of every second."""
    monkeypatch.setattr(server, "WATCH_EVERY_S", 0.01)


@asynccontextmanager
async def serving(file: NetworkFile | None = None) -> AsyncIterator[tuple[Hub, Listening]]:
    async with (
        Hub(file or config(), open_store("sqlite::memory:")) as hub,
        serve_hub(hub, "127.0.0.1:0", pages=Site(About("town", "open"))) as listening,
    ):
        yield hub, listening


class RawSocket:
    """A WebSocket client that answers nothing on its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer

    async def send(self, opcode: Opcode, payload: bytes, *, fin: bool = True) -> None:
        self.writer.write(Frame(opcode, payload, fin).serialize(mask=True))
        await self.writer.drain()

    @property
    def transport(self) -> asyncio.ReadTransport:
        transport = self.writer.transport
        assert isinstance(transport, asyncio.ReadTransport)
        return transport

    async def frame(self) -> tuple[Opcode, bytes]:
        """The hub's next frame; it sends complete, unmasked ones."""
        async with soon():
            head, size = await self.reader.readexactly(2)
            if size == 126:
                size = int.from_bytes(await self.reader.readexactly(2), "big")
            elif size == 127:
                size = int.from_bytes(await self.reader.readexactly(8), "big")
            return Opcode(head & 0x0F), await self.reader.readexactly(size)

    async def until(self, opcode: Opcode) -> bytes:
        while True:
            received, payload = await self.frame()
            if received is opcode:
                return payload

    async def assert_responsive(self) -> None:
        """The hub still answers a call."""
        await self.send(Opcode.TEXT, b'{"op":"call","ref":"1","name":"list_channels"}')
        while json.loads(await self.until(Opcode.TEXT))["op"] != "result":
            pass

    async def close_code(self) -> int:
        return int.from_bytes((await self.until(Opcode.CLOSE))[:2], "big")


@asynccontextmanager
async def raw(
    at: Listening, *, early: bytes = b"", holds: int | None = None
) -> AsyncIterator[RawSocket]:
    """A raw connection after its handshake. `early` is sent right after the request.

    The kernel buffers about `holds` unread bytes; by default, some megabytes.
    """
    plain = socket.socket()
    if holds is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, holds)  # before connecting
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, (at.host, at.port))
    reader, writer = await asyncio.open_connection(sock=plain)
    key = base64.b64encode(b"0123456789abcdef").decode()
    request = (
        f"GET / HTTP/1.1\r\nHost: {at}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    writer.write(request.encode() + early)
    async with soon():
        answer = await reader.readuntil(b"\r\n\r\n")
    assert b" 101 " in answer
    try:
        yield RawSocket(reader, writer)
    finally:
        writer.close()


async def http(
    at: Listening, path: str, method: str = "GET", *, after: str = "", **headers: str
) -> tuple[int, dict[str, str], str]:
    """One plain request: status, headers, body. `after` is sent right after its head."""
    reader, writer = await asyncio.open_connection(at.host, at.port)
    sent = {"Host": at, **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n{after}".encode())
    async with soon():
        answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    status, *rest = head.split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in rest), body


@pytest.mark.behaviour("B-6")
async def test_a_socket_that_never_identifies_is_closed() -> None:
    file = config(network={"limits": {"identify_within": 0.02}})
    async with serving(file) as (hub, at), raw(at) as peer:
        assert await peer.close_code() == 4500
        assert len(hub.gateway.sessions()) == 0


@pytest.mark.behaviour("B-7")
async def test_a_socket_that_answers_no_ping_is_closed_and_an_idle_one_that_does_stays() -> None:
    file = config(network={"limits": {"heartbeat": 0.02, "heartbeat_reply": 0.02}})
    async with serving(file) as (_hub, at), raw(at) as peer:
        await peer.send(Opcode.TEXT, HELLO)
        assert await peer.until(Opcode.PING) == b""
        assert await peer.close_code() == 4003
    file = config(network={"limits": {"heartbeat": 0.01, "heartbeat_reply": DEADLINE_S}})
    async with serving(file) as (_hub, at), raw(at) as peer:
        await peer.send(Opcode.TEXT, HELLO)
        for _ in range(5):
            await peer.until(Opcode.PING)
            await peer.send(Opcode.PONG, b"")
        await peer.assert_responsive()


@pytest.mark.behaviour("B-9")
async def test_a_client_that_floods_pings_without_reading_pongs_is_disconnected() -> None:
    file = config(network={"limits": {"unsent": "64KiB"}})
    async with serving(file) as (hub, at), raw(at) as peer:
        await peer.send(Opcode.TEXT, HELLO)
        peer.transport.pause_reading()
        pings = Frame(Opcode.PING, b"x" * 125).serialize(mask=True) * 500
        with suppress(ConnectionError):
            async with soon():
                while True:
                    peer.writer.write(pings)
                    await peer.writer.drain()
        await eventually(lambda: len(hub.gateway.sessions()) == 0)


@pytest.mark.behaviour("B-9")
async def test_a_client_that_stops_reading_is_closed_and_catches_up_later(
    on_sockets: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"unsent": "64KiB", "unsent_for": 0.2, "burst": 10000, "unacknowledged": 4096}
    async with on_sockets.start(config(network={"limits": limits})) as network:
        ann = await network.join("ann")
        at = Listening("127.0.0.1", int(network.local.url.rpartition(":")[2]))
        async with raw(at, holds=64 * 1024) as deaf:
            await deaf.send(Opcode.TEXT, HELLO.replace(b"ann", b"bob"))
            await deaf.until(Opcode.TEXT)
            deaf.transport.pause_reading()
            await eventually(lambda: "bob" in network.hub.kernel.state.presence)
            sent = 0
            async with soon():
                while "bob" in network.hub.kernel.state.presence:
                    await ann.say("bob", "x" * 60_000)
                    sent += 1
            deaf.transport.resume_reading()
            assert await deaf.close_code() == 4002
        # The backlog exceeds the limit at once, so a reader that did not run between two checks
        # would be closed as well.
        monkeypatch.setattr(server, "WATCH_EVERY_S", DEADLINE_S)
        back = await network.join("bob")
        for _ in range(sent):
            event = await back.event()
            await back.ack(event["seq"])
        assert event["seq"] == sent
        assert await back.sync() == []


async def test_fragments_and_binary_frames_are_read_as_text() -> None:
    async with serving() as (_hub, at):
        for opcode in (Opcode.TEXT, Opcode.BINARY):
            async with raw(at) as peer:
                await peer.send(opcode, HELLO[:20], fin=False)
                await peer.send(Opcode.PING, b"in between")
                await peer.send(Opcode.CONT, HELLO[20:40], fin=False)
                await peer.send(Opcode.CONT, HELLO[40:])
                assert await peer.until(Opcode.PONG) == b"in between"
                assert json.loads(await peer.until(Opcode.TEXT))["op"] == "ready"
        async with raw(at) as peer:
            await peer.send(Opcode.TEXT, HELLO[:20], fin=False)
            await peer.send(Opcode.TEXT, HELLO)  # no other message can start in between
            assert await peer.close_code() == 1002


async def test_empty_fragments_take_no_memory() -> None:
    empty = Frame(Opcode.CONT, b"", fin=False).serialize(mask=True)
    async with serving() as (_hub, at), raw(at) as peer:
        await peer.send(Opcode.TEXT, HELLO)
        while json.loads(await peer.until(Opcode.TEXT))["op"] != "ready":
            pass
        await peer.send(Opcode.TEXT, b"", fin=False)
        tracemalloc.start()
        try:
            peer.writer.write(empty * 50_000)
            await peer.writer.drain()
            await peer.send(Opcode.PING, b"")
            assert await peer.until(Opcode.PONG) == b""
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held < 200_000


async def test_a_client_can_send_frames_before_the_handshake_completes() -> None:
    early = Frame(Opcode.TEXT, HELLO).serialize(mask=True)
    async with serving() as (_hub, at):
        for cut in (len(early), 1, 7, len(early) - 1):
            async with raw(at, early=early[:cut]) as peer:
                peer.writer.write(early[cut:])
                ops = [json.loads(await peer.until(Opcode.TEXT))["op"] for _ in range(2)]
                assert ops == ["hello", "ready"]
                await peer.assert_responsive()


BROKEN = [
    (b"\x81\x02hi", 1002),  # not masked
    (b"\xc1\x80maskx", 1002),  # a reserved bit
    (b"\x83\x80mask", 1002),  # a reserved opcode
    (b"\x89\xfe\x00\x7emask" + b"x" * 126, 1002),  # a ping that is too long
    (b"\x80\x80mask", 1002),  # a continuation without a start
    (b"\x81\xff" + b"\x7f" * 8 + b"mask", 1009),  # a frame of several exabytes
    (Frame(Opcode.TEXT, b"\xce").serialize(mask=True), 1007),  # half a character
    (
        Frame(Opcode.TEXT, b"{", fin=False).serialize(mask=True)
        + Frame(Opcode.CONT, b"\xff").serialize(mask=True),
        1007,
    ),
]


NO_HANDSHAKES = [
    bytes(range(200)),
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(100)),  # TLS
    b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    b"GET / HT",  # incomplete
]


@pytest.mark.behaviour("B-8")
async def test_broken_handshakes_and_frames_end_only_their_own_connection() -> None:
    async with serving() as (_hub, at), raw(at) as other:
        await other.send(Opcode.TEXT, HELLO)
        for data in NO_HANDSHAKES:
            reader, writer = await asyncio.open_connection(at.host, at.port)
            writer.write(data)
            with suppress(ConnectionError):
                writer.write_eof()
                async with soon():
                    assert b" 101 " not in await reader.read()
            writer.close()
        for frame, code in BROKEN:
            async with raw(at) as peer:
                peer.writer.write(frame)
                assert await peer.close_code() == code, frame
        await other.assert_responsive()


@pytest.mark.behaviour("B-1")
async def test_a_message_far_beyond_the_limit_closes_the_socket_unread() -> None:
    file = config(network={"limits": {"frame": 1024}})
    async with serving(file) as (_hub, at), raw(at) as peer:
        await peer.send(Opcode.TEXT, b"x" * 3000)
        frames = [json.loads(await peer.until(Opcode.TEXT)) for _ in range(2)]
        assert frames[1]["code"] == "too_large"
        await peer.send(Opcode.TEXT, b"x" * 5000)
        assert await peer.close_code() == 1009


@pytest.mark.behaviour("B-12")
async def test_an_unidentified_client_that_sends_endlessly_is_disconnected() -> None:
    async with serving() as (_hub, at), raw(at) as eve:
        with suppress(ConnectionError):
            for _ in range(40):
                await eve.send(Opcode.TEXT, b"x" * 8000, fin=False)
        async with soon():
            with suppress(ConnectionError):
                await eve.reader.read()


@pytest.mark.behaviour("B-13")
@pytest.mark.parametrize(
    ("limits", "limit"),
    [({"strangers": 3}, "network.limits.strangers"), ({"connections": 3}, "limits.connections")],
)
async def test_a_connection_over_a_limit_is_refused_naming_it(
    limits: dict[str, int], limit: str
) -> None:
    async with serving(config(network={"limits": limits})) as (_hub, at):
        transport = WebSocketTransport(at.url)
        wires = [await transport.open() for _ in range(3)]
        with pytest.raises(ConnectionLost, match=limit):
            await transport.open()
        await wires[0].recv()
        if "strangers" in limits:  # an identified client no longer counts
            await wires[0].send(HELLO)
            await wires[0].recv()
        else:
            await wires.pop(0).close()
        wires.append(await transport.open())
        for wire in wires:
            await wire.close()


async def test_compression_is_negotiated_only_if_it_is_enabled() -> None:
    for enabled in (True, False):
        async with (
            serving(config(network={"compression": enabled})) as (_hub, at),
            connect(at.url, compression="deflate", proxy=None) as socket,
        ):
            assert bool(socket.protocol.extensions) is enabled
            assert json.loads(await socket.recv())["op"] == "hello"
            await socket.send(HELLO.decode())
            assert json.loads(await socket.recv())["op"] == "ready"


@pytest.mark.behaviour("D-7")
async def test_the_port_serves_the_page_health_checks_and_metrics() -> None:
    async with serving() as (hub, at):
        assert "<title>town</title>" in (await http(at, "/"))[2]
        status, headers, _body = await http(at, "/")
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        status, headers, body = await http(at, "/", method="HEAD")
        assert (status, body) == (200, "")
        assert headers["Content-Length"] == str(len((await http(at, "/"))[2].encode()))
        assert (await http(at, "/healthz"))[::2] == (200, "ok\n")
        assert (await http(at, "/readyz"))[::2] == (200, "ready\n")
        status, headers, body = await http(at, "/metrics")
        assert status == 200
        assert "hubbub_sessions 0.0" in body
        assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert (await http(at, "/config"))[0] == 404
        hub.kernel.draining.set()
        assert (await http(at, "/readyz"))[::2] == (503, "stopping\n")


@pytest.mark.behaviour("D-7")
async def test_a_request_with_a_body_or_another_request_after_it_is_answered() -> None:
    async with serving() as (_hub, at):
        for body in ("{}", "x" * 1_000_000):
            length = {"Content-Length": str(len(body))}
            assert (await http(at, "/v1/models", "POST", after=body, **length))[0] == 404
            assert (await http(at, "/healthz", after=body, **length))[::2] == (200, "ok\n")
        pipelined = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        status, headers, body_text = await http(at, "/healthz", after=pipelined)
        assert (status, headers["Connection"], body_text) == (200, "close", "ok\n")


@pytest.mark.behaviour("D-7")
@pytest.mark.parametrize("url", ["sqlite::memory:", "sqlite:{tmp}/hub.db"])
async def test_a_hub_with_a_full_disk_is_not_ready(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(url.format(tmp=tmp_path))
    async with Hub(config(), store) as hub, serve_hub(hub, "127.0.0.1:0") as at:
        async with full_disk(store):
            assert (await http(at, "/readyz"))[::2] == (503, "the store cannot be written\n")
        monkeypatch.setattr(readiness, "FRESH_S", 0.0)
        assert (await http(at, "/readyz"))[::2] == (200, "ready\n")


@pytest.mark.behaviour("D-7")
async def test_a_hub_whose_last_write_failed_is_not_ready(tmp_path: Path) -> None:
    store = MoodyStore(f"sqlite:{tmp_path}/hub.db")
    async with Hub(config(), store) as hub, serve_hub(hub, "127.0.0.1:0") as at:
        assert (await http(at, "/readyz"))[0] == 200
        written = len(store.batches)
        assert (await http(at, "/readyz"))[0] == 200
        assert len(store.batches) == written, "a repeated check reuses the last result"
        store.failing = 1
        with pytest.raises(StoreUnavailable):
            await hub.kernel.log.write()
        assert (await http(at, "/readyz"))[0] == 503


@pytest.mark.behaviour("D-7")
async def test_requests_from_other_sites_are_refused() -> None:
    async with serving() as (hub, at):
        for headers in (
            {"Host": "evil.example"},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
        ):
            for path in ("/", "/metrics", "/healthz"):
                assert (await http(at, path, **headers))[0] == 403
            if "Origin" in headers:
                with pytest.raises(InvalidStatus) as refused:
                    await connect(at.url, additional_headers=headers, proxy=None)
                assert refused.value.response.status_code == 403
        assert hub.gateway.sessions() == []
        async with connect(at.url, origin=Origin(f"http://{at}"), proxy=None) as socket:
            assert json.loads(await socket.recv())["op"] == "hello", "the hub's own page"


@pytest.mark.behaviour("D-6")
async def test_an_unusable_or_forbidden_listen_address_is_reported() -> None:
    tokens = config(network={"auth": "tokens"})
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        used = f"127.0.0.1:{taken.getsockname()[1]}"
        for file, listen, message in (
            (config(), "0.0.0.0:0", "auth: tokens"),  # an open network is local only
            (config(), "[::]:0", "auth: tokens"),
            (config(), used, f"{used} is in use"),
            (tokens, "192.0.2.1:4820", r"cannot listen on 192\.0\.2\.1"),
        ):
            async with Hub(file, open_store("sqlite::memory:")) as hub:
                with pytest.raises(UserError, match=message):
                    async with serve_hub(hub, listen):
                        pytest.fail("the hub must not listen")
    async with (
        Hub(tokens, open_store("sqlite::memory:")) as hub,
        serve_hub(hub, "0.0.0.0:0") as listening,
    ):
        assert listening.port > 0


async def test_a_busy_hub_queues_hundreds_of_new_connections() -> None:
    """The loop does not run meanwhile; clients the kernel does not queue retry a second later."""
    async with serving() as (_, listening):
        clients = [socket.socket() for _ in range(300)]
        try:
            for client in clients:
                client.setblocking(False)
                client.connect_ex((listening.host, listening.port))
            assert all(_is_connected(client) for client in clients)
        finally:
            for client in clients:
                client.close()


def _is_connected(client: socket.socket) -> bool:
    try:
        client.getpeername()
    except OSError:
        return False
    return True


class RemainingFrames:
    """The unread frames of a closed socket, whatever its close code."""

    def __init__(self, socket: ClientConnection):
        self._socket = socket

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        with suppress(ConnectionClosed):
            while True:
                yield await self._socket.recv()


@pytest.mark.behaviour("P-30")
async def test_a_stopping_hub_asks_every_client_to_reconnect() -> None:
    async with serving() as (_hub, at):
        sockets = [await connect(at.url, proxy=None) for _ in range(5)]
        for socket in sockets:
            await socket.recv()
    for socket in sockets:
        ops = [json.loads(frame)["op"] async for frame in RemainingFrames(socket)]
        assert ops == ["reconnect"]
        assert socket.close_code == 4006
