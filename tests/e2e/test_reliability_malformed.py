"""Ten thousand malformed frames cause errors for their sender and disturb no other client."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from pydantic import JsonValue

from hubbub.client import Client, Disconnected, WebSocketTransport
from hubbub.errors import ConnectionLost
from hubbub.protocol.codes import CloseCode, ErrorCode
from hubbub.protocol.frames import STRANGER_BYTES, STRANGER_FRAMES, ErrorFrame, Event, Ready
from tests.e2e.support.hubs import DEADLINE_S, HubProcess, running_hub
from tests.e2e.support.peers import peer
from tests.interaction.peers import Frame, Peer

FRAME_BYTES = 256 * 1024


class Broken(NamedTuple):
    """One frame as sent."""

    data: bytes
    certain: bool
    """Whether it is certainly invalid; a mutation can leave a valid frame."""


def _call(args: str, name: str = "send_text_message") -> bytes:
    return f'{{"op":"call","ref":"r","name":"{name}","args":{args}}}'.encode()


LISTED: Sequence[bytes] = (
    # Depth bombs.
    b"[" * 100_000,
    b'{"op":' * 20_000,
    _call('{"to":"ann","content":' + "[" * 200 + "]" * 200 + "}", "send_message"),
    _call('{"to":"ann","content":' + '{"a":' * 60 + "1" + "}" * 60 + "}", "send_message"),
    # Too large.
    b"x" * (FRAME_BYTES + 1),
    _call('{"to":"ann","text":"' + "x" * FRAME_BYTES + '"}'),
    _call('{"to":"ann","text":"' + "x" * (64 * 1024 + 1) + '"}'),
    _call('{"to":"ann","content":"' + "€" * 30_000 + '"}', "send_message"),
    _call('{"to":"ann","content":' + "9" * 5000 + "}", "send_message"),
    # Refused by a handler, not by the codec.
    _call('{"to":"ann","text":"x","cause":"m999999"}'),
    _call('{"to":"ann","text":"x","cause":"ann-m1"}'),
    _call('{"to":"ann","text":"x","mentions":["nobody"]}'),
    _call('{"to":"nobody","text":"x"}'),
    _call('{"to":"mallory","text":"x"}'),
    _call('{"to":"../../etc/passwd","text":"x"}'),
    _call('{"thread":"dm.ann.bob"}', "read_thread"),
    _call('{"id":"m99999999999999999999"}', "read_message"),
    _call('{"channel":"nowhere","text":"x"}', "post_to_channel"),
    _call('{"name":"no spaces"}', "create_channel"),
    _call("{}", "__class__"),
)
"""Frames that random choice misses. Frames refused by the codec have unit tests."""

_GOOD: Sequence[dict[str, JsonValue]] = (
    {"op": "ack", "seq": 0},
    {"op": "signal", "type": "typing", "thread_id": "direct_ann", "data": {"text": "…"}},
    {"op": "identify", "version": "hubbub.v1", "participant": "mallory", "kind": "agent"},
    {"op": "call", "ref": "1", "name": "list_threads", "args": {"limit": 3}},
    {"op": "call", "ref": "2", "name": "read_thread", "args": {"thread": "broadcast", "limit": 5}},
    {
        "op": "call",
        "ref": "3",
        "name": "send_text_message",
        "cid": "c-1",
        "args": {"to": "mallory2", "text": "hi @ann `code` @nobody", "mentions": [], "quote": None},
    },
    {
        "op": "call",
        "ref": "4",
        "name": "send_message",
        "args": {"to": ["mallory2", "ann"], "content": {"a": [1, 2.5, None, True, "ä"]}},
    },
    {"op": "call", "ref": "5", "name": "reply", "args": {"message_id": "m1", "text": "x"}},
)

_WORDS = ("ann", "mallory", "broadcast", "m1", "call", "\0", "\ud800", "")
_LETTERS = 'abc "\\{}[]:,ä€🙂\n\x7f\u200b\ud83d'


class _FrameGenerator:
    """Generates random frames, the same for each seed."""

    def __init__(self, seed: int):
        self._chance = random.Random(seed)

    def frame(self) -> Broken:
        make = self._chance.choice(
            [self._listed, self._bytes, self._other_json, self._replaced_value, self._mutation]
        )
        return make()

    def _listed(self) -> Broken:
        return Broken(self._chance.choice(LISTED), True)

    def _bytes(self) -> Broken:
        size = self._chance.randint(0, 60)
        text = self._text(size).encode(errors="surrogatepass")
        return Broken(self._chance.choice([text, self._chance.randbytes(size)]), True)

    def _other_json(self) -> Broken:
        return Broken(json.dumps(self._json()).encode(), True)

    def _replaced_value(self) -> Broken:
        """A valid frame with one value, of the frame or its arguments, replaced."""
        frame = dict(self._chance.choice(_GOOD))
        args = frame.get("args")
        target = frame
        if isinstance(args, dict) and self._chance.random() < 0.5:
            target = frame["args"] = dict(args)
        target[self._chance.choice([*target, self._text(5)])] = self._json()
        text = json.dumps(frame, ensure_ascii=self._chance.random() < 0.5)
        return Broken(text.encode(errors="surrogatepass"), False)

    def _mutation(self) -> Broken:
        """A valid frame with some bytes removed, doubled, inserted or changed."""
        chance = self._chance
        data = bytearray(json.dumps(chance.choice(_GOOD), ensure_ascii=False).encode())
        for _ in range(chance.randint(1, 3)):
            at = chance.randint(0, max(len(data) - 1, 0))
            end = min(len(data), at + chance.randint(1, 12))
            same = bytes(data[at:end])
            new = chance.choice([b"", same * 2, chance.randbytes(6), chance.randbytes(end - at)])
            data[at : chance.choice([end, len(data)])] = new
        return Broken(bytes(data), False)

    def _json(self, depth: int = 0) -> JsonValue:
        chance = self._chance
        match chance.randint(0, 6 if depth < 3 else 4):
            case 0:
                return chance.choice([None, True, False])
            case 1:
                return chance.choice([0, -1, 1, 2**31, 2**53, -(2**63), 2**64, 10**30])
            case 2:
                return chance.choice([0.5, -0.0, 1e300, math.nan, math.inf, chance.random()])
            case 3:
                return chance.choice(_WORDS)
            case 4:
                return self._text(20)
            case 5:
                return [self._json(depth + 1) for _ in range(chance.randint(0, 4))]
            case _:
                return {self._text(8): self._json(depth + 1) for _ in range(chance.randint(0, 4))}

    def _text(self, size: int) -> str:
        return "".join(self._chance.choices(_LETTERS, k=self._chance.randint(0, size)))


def corpus(count: int) -> list[Broken]:
    """`count` frames of text, the listed ones first. (Frames that are not text close a socket.)"""
    generator = _FrameGenerator(1)
    listed = [Broken(data, True) for data in LISTED]
    generated = (generator.frame() for _ in range(count))
    return [*listed, *(each._replace(data=_text(each.data)) for each in generated)][:count]


def _text(data: bytes) -> bytes:
    return data.decode(errors="replace").encode()


pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

FRAMES = 10_000
WARM_UP = 3_000
"""Frames that fill the caches; afterwards memory must not grow."""
CHUNK = 20
GROWTH_KIB = 3 * 1024
LEAKS = ("Traceback", 'File "', ".py", "site-packages", "hubbub/", "0x7f", "pydantic", "sqlite")


def _check_error(frame: Frame) -> None:
    """An error describes the frame and reveals nothing of the hub's internals."""
    error = ErrorFrame.model_validate(frame)
    assert error.code in set(ErrorCode), frame
    assert error.code != ErrorCode.INTERNAL, frame
    assert 0 < len(error.message) <= 500, frame
    assert not any(leak in error.message for leak in LEAKS), frame


async def _answers(mallory: Peer, chunk: Sequence[Broken], fence: str) -> None:
    """Sends the frames and a valid call, then waits for its result and for one error per invalid
    frame, which can come after the result if the store is involved.
    """
    for frame in chunk:
        await mallory.send_raw(frame.data)
    await mallory.send(op="call", ref=fence, name="list_channels")
    wrong, fenced = sum(frame.certain for frame in chunk), False
    while wrong > 0 or not fenced:
        answer = await mallory.receive()
        fenced |= answer["op"] == "result" and answer["ref"] == fence
        if answer["op"] == "error":
            _check_error(answer)
            wrong -= 1


async def _one_connection(hub: HubProcess, frames: list[Broken]) -> None:
    """Sends chunks, from the end of `frames`, until the hub closes the socket or none is left."""
    code = None
    async with peer(hub.url) as mallory:
        await mallory.identify("mallory", "agent")
        try:
            while frames:
                chunk = [frames.pop() for _ in range(min(CHUNK, len(frames)))]
                async with asyncio.timeout(DEADLINE_S):  # fails if a frame went unanswered
                    await _answers(mallory, chunk, f"fence-{len(frames)}")
        except ConnectionLost as lost:
            code = lost.code
    assert code == CloseCode.BAD_FRAME or not frames


class _Neighbours:
    """Two well-behaved participants that talk while another one misbehaves."""

    def __init__(self) -> None:
        self.exchanged = 0
        self.interruptions: list[object] = []
        self._changed = asyncio.Condition()

    async def talk(self, ann: Client, bob: Client) -> None:
        """Ann counts, bob answers each number, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._answer(bob))
            await ann.call("send_text_message", to="bob", text="0")
            async for item in ann.events():
                if self._is_from(item, "bob"):
                    assert isinstance(item, Event)
                    assert item.message.text == str(self.exchanged), "out of order"
                    self.exchanged += 1
                    async with self._changed:
                        self._changed.notify_all()
                    await ann.ack(item.seq)
                    await ann.call("send_text_message", to="bob", text=str(self.exchanged))

    async def exchange(self, count: int = 1) -> None:
        """Waits until they have exchanged `count` more messages."""
        goal = self.exchanged + count
        async with asyncio.timeout(DEADLINE_S), self._changed:
            await self._changed.wait_for(lambda: self.exchanged >= goal)

    async def _answer(self, bob: Client) -> None:
        async for item in bob.events():
            if self._is_from(item, "ann"):
                assert isinstance(item, Event)
                await bob.call("send_text_message", to="ann", text=item.message.text)
                await bob.ack(item.seq)

    def _is_from(self, item: object, sender: str) -> bool:
        if isinstance(item, Disconnected) or (isinstance(item, Ready) and item.resumed):
            self.interruptions.append(item)
        return isinstance(item, Event) and item.message.sender_id == sender


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[HubProcess]:
    async with running_hub(tmp_path) as hub:
        yield hub


@asynccontextmanager
async def _neighbours(hub: HubProcess) -> AsyncIterator[_Neighbours]:
    """They talk while the context lasts, and must not be disturbed."""
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
    assert neighbours.interruptions == []


@pytest.mark.behaviour("R-3", "B-8")
async def test_malformed_frames_are_answered_and_disturb_no_other_client(
    hub: HubProcess,
) -> None:
    frames = corpus(FRAMES)
    random.Random(1).shuffle(frames)
    connections = warm = 0
    async with _neighbours(hub) as neighbours:
        while frames:
            await _one_connection(hub, frames)
            connections += 1
            await neighbours.exchange()
            if not warm and len(frames) <= FRAMES - WARM_UP:
                warm = hub.rss_kib()
        grown = hub.rss_kib() - warm
    assert connections > FRAMES // 200, "sockets that only send malformed frames stay open"
    assert grown < GROWTH_KIB


async def test_a_socket_can_still_identify_after_malformed_frames(
    hub: HubProcess,
) -> None:
    every, most = corpus(200), STRANGER_FRAMES - 1
    for first in range(0, len(every), most):
        async with peer(hub.url) as mallory:
            frames = [
                frame
                for frame in every[first : first + most]
                if frame.certain and len(frame.data) <= STRANGER_BYTES
            ]
            for frame in frames:
                await mallory.send_raw(frame.data)
            for _ in frames:
                _check_error(await mallory.receive())
            ready = await mallory.identify("mallory", "agent")
            assert ready["participant"] == "mallory"
