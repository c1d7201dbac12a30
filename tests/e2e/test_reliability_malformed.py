"""Ten thousand wrong frames: errors for their sender, nothing for anybody else."""

from __future__ import annotations

import asyncio
import json
import random
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from benchmarks.wire import handshake
from hubbub.client import Client, Disconnected, WebSocketTransport
from hubbub.protocol.codes import CloseCode, ErrorCode
from hubbub.protocol.frames import STRANGER_BYTES, STRANGER_FRAMES, ErrorFrame, Event, Ready
from tests.e2e.support.frames import Broken, corpus
from tests.e2e.support.hubs import DEADLINE_S, HubProcess, running_hub
from tests.e2e.support.peers import Frame, Peer, peer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

FRAMES = 10_000
WARM_UP = 3_000
"""Frames after which caches are full; from then on memory must not grow."""
CHUNK = 20
GROWTH_KIB = 3 * 1024
LEAKS = ("Traceback", 'File "', ".py", "site-packages", "hubbub/", "0x7f", "pydantic", "sqlite")


def _check_error(frame: Frame) -> None:
    """An error says what is wrong with the frame, and nothing of the hub's inside."""
    error = ErrorFrame.model_validate(frame)
    assert error.code in set(ErrorCode), frame
    assert error.code != ErrorCode.INTERNAL, frame
    assert 0 < len(error.message) <= 500, frame
    assert not any(leak in error.message for leak in LEAKS), frame


async def _answers(mallory: Peer, chunk: Sequence[Broken], fence: str) -> int:
    """Send the frames and then a good call; returns how many errors came before its answer."""
    for frame in chunk:
        await mallory.socket.send(frame.data, text=True)
    await mallory.send({"op": "call", "ref": fence, "name": "list_channels"})
    errors = 0
    while True:
        answer = await mallory.recv()
        if answer["op"] == "result" and answer["ref"] == fence:
            return errors
        if answer["op"] == "error":
            _check_error(answer)
            errors += 1


async def _one_connection(hub: HubProcess, frames: list[Broken]) -> None:
    """Send chunks, from the end of `frames`, until the hub closes the socket or none is left."""
    async with peer(hub.url) as mallory:
        await mallory.identify("mallory", "agent")
        try:
            while frames:
                chunk = [frames.pop() for _ in range(min(CHUNK, len(frames)))]
                came = await _answers(mallory, chunk, f"fence-{len(frames)}")
                assert came >= sum(frame.surely for frame in chunk), "a wrong frame went unanswered"
        except ConnectionClosed:
            pass
    assert mallory.socket.close_code == CloseCode.BAD_FRAME or not frames


class _Neighbours:
    """Two well-behaved participants who talk while somebody else misbehaves."""

    def __init__(self) -> None:
        self.exchanged = 0
        self.trouble: list[object] = []
        self._news = asyncio.Condition()

    async def talk(self, ann: Client, bob: Client) -> None:
        """Ann counts, bob answers each number, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._answer(bob))
            await ann.call("send_text_message", to="bob", text="0")
            async for item in ann.events():
                if self._is_from(item, "bob"):
                    assert isinstance(item, Event)
                    assert item.message.text == str(self.exchanged), "order"
                    self.exchanged += 1
                    async with self._news:
                        self._news.notify_all()
                    await ann.ack(item.seq)
                    await ann.call("send_text_message", to="bob", text=str(self.exchanged))

    async def go_on(self, count: int = 1) -> None:
        """Wait until they have exchanged so many messages more."""
        goal = self.exchanged + count
        async with asyncio.timeout(DEADLINE_S), self._news:
            await self._news.wait_for(lambda: self.exchanged >= goal)

    async def _answer(self, bob: Client) -> None:
        async for item in bob.events():
            if self._is_from(item, "ann"):
                assert isinstance(item, Event)
                await bob.call("send_text_message", to="ann", text=item.message.text)
                await bob.ack(item.seq)

    def _is_from(self, item: object, sender: str) -> bool:
        if isinstance(item, Disconnected) or (isinstance(item, Ready) and item.resumed):
            self.trouble.append(item)
        return isinstance(item, Event) and item.message.sender_id == sender


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[HubProcess]:
    async with running_hub(tmp_path) as hub:
        yield hub


@asynccontextmanager
async def _neighbours(hub: HubProcess) -> AsyncIterator[_Neighbours]:
    """They talk while the context lasts, and nothing disturbs them."""
    async with AsyncExitStack() as stack:
        ann, bob = [
            await stack.enter_async_context(Client(WebSocketTransport(hub.url), name, "human"))
            for name in ("ann", "bob")
        ]
        neighbours = _Neighbours()
        talking = asyncio.create_task(neighbours.talk(ann, bob))
        yield neighbours
        assert not talking.done(), talking
        talking.cancel()
    assert neighbours.trouble == []


@pytest.mark.behaviour("R-3", "B-8")
async def test_ten_thousand_malformed_frames_are_answered_and_disturb_nobody(
    hub: HubProcess,
) -> None:
    frames = corpus(FRAMES)
    random.Random(1).shuffle(frames)
    connections = warm = 0
    async with _neighbours(hub) as neighbours:
        while frames:
            await _one_connection(hub, frames)
            connections += 1
            await neighbours.go_on()
            if not warm and len(frames) <= FRAMES - WARM_UP:
                warm = hub.rss_kib()
        grown = hub.rss_kib() - warm
    assert connections > FRAMES // 200, "sockets that send nothing else are closed"
    assert grown < GROWTH_KIB


async def test_frames_before_identify_are_refused_and_the_socket_can_still_join(
    hub: HubProcess,
) -> None:
    every, most = corpus(200), STRANGER_FRAMES - 1
    for first in range(0, len(every), most):
        async with peer(hub.url) as mallory:
            frames = [
                frame
                for frame in every[first : first + most]
                if frame.surely and len(frame.data) <= STRANGER_BYTES
            ]
            for frame in frames:
                await mallory.socket.send(frame.data, text=True)
            for _ in frames:
                _check_error(await mallory.recv())
            ready = await mallory.identify("mallory", "agent")
            assert ready["participant"] == "mallory"


def _wire_garbage(port: int, chance: random.Random) -> list[bytes]:
    """What is no WebSocket, or breaks its rules after the handshake."""
    hello = handshake(port, "/")
    masked = b"\0\0\0\0"
    return [
        chance.randbytes(200),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(100),  # TLS
        b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nhello",
        hello[: chance.randrange(1, len(hello))],
        hello + b"\x81\x05hello",  # not masked
        hello + b"\xf1\x80" + masked,  # reserved bits
        hello + b"\x83\x80" + masked,  # reserved opcode
        hello + b"\x09\x80" + masked,  # a ping in fragments
        hello + b"\x89\xfe\x00\x7e" + masked + b"x" * 126,  # a long ping
        hello + b"\x80\x80" + masked,  # the rest of nothing
        hello + b"\x01\x80" + masked + b"\x81\x80" + masked,  # a frame amid fragments
        hello + b"\x81\xff" + struct.pack("!Q", 2**62) + masked,  # four exabytes follow
        hello + b"\x81\xff" + struct.pack("!Q", 2 * 1024 * 1024) + masked + b"x" * 1000,
        hello + b"\x88\x82" + masked + b"\x00\x01",  # a close code that does not exist
        hello + b"\x82\x83" + masked + b"\xff\xfe\xfd",  # bytes that are no text
        hello + chance.randbytes(300),
    ]


async def _throw(port: int, data: bytes) -> None:
    """Send bytes and leave without a word."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        await writer.drain()
        await reader.read(1)  # the hub has seen at least the beginning
    except ConnectionError:
        return  # the hub has cut it off
    finally:
        writer.transport.abort()


async def test_broken_handshakes_and_websocket_frames_leave_the_hub_as_it_was(
    hub: HubProcess,
) -> None:
    chance = random.Random(7)
    async with _neighbours(hub) as neighbours:
        for _ in range(5):
            for data in _wire_garbage(hub.port, chance):
                if b"\r\n\r\n" in data:
                    await _throw(hub.port, data)
                else:  # a half request: the hub rightly waits for the rest
                    _, writer = await asyncio.open_connection("127.0.0.1", hub.port)
                    writer.write(data)
                    writer.close()
            await neighbours.go_on()
        await neighbours.go_on(20)


async def test_a_frame_beyond_all_measure_closes_the_socket_for_good(hub: HubProcess) -> None:
    async with peer(hub.url) as mallory:
        await mallory.identify("mallory", "agent")
        await mallory.socket.send(json.dumps("x" * 2_000_000))
        with pytest.raises(ConnectionClosed) as closed:
            await _read_on(mallory)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


async def _read_on(mallory: Peer) -> None:
    """Read what is on its way, until the connection ends."""
    while True:
        await mallory.recv()
