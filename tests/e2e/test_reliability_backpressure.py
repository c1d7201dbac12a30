"""How much the hub holds for one who reads slowly, and that the rest waits in the log."""

from __future__ import annotations

import asyncio
import json
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.client import Client
from hubbub.protocol.wire import Inlet
from hubbub.testing.network import LocalNetwork
from tests.e2e.support.peers import Frame, inside, integer

BIG = 50_000
UNSENT = 1024 * 1024
"""The default of `limits.unsent`."""


class SlowOutlet:
    """A connection whose peer takes frames only when it is told to."""

    def __init__(self) -> None:
        self.inlet: Inlet
        self.most = 0
        self.closed: int | None = None
        self._frames: deque[bytes] = deque()
        self._news = asyncio.Event()

    def write(self, frame: bytes) -> None:
        self._frames.append(frame)
        self.most = max(self.most, self.unsent())
        self._news.set()

    def close(self, code: int, reason: str) -> None:
        self.closed = code

    def identified(self) -> None:
        pass

    def unsent(self) -> int:
        return sum(map(len, self._frames))

    async def take(self) -> Frame:
        """The next frame, as soon as there is one."""
        while not self._frames:
            self._news.clear()
            await self._news.wait()
        frame: Frame = json.loads(self._frames.popleft())
        if not self._frames:
            self.inlet.drained()
        return frame

    async def take_event(self) -> Frame:
        while (frame := await self.take())["op"] != "event":
            pass
        return frame

    def say(self, frame: Frame) -> None:
        self.inlet.receive(json.dumps(frame).encode())


def _identify(participant: str) -> Frame:
    frame: Frame = {"op": "identify", "version": "hubbub.v1"}
    return {**frame, "participant": participant, "kind": "human"}


async def _join_slowly(network: LocalNetwork, participant: str) -> SlowOutlet:
    outlet = SlowOutlet()
    outlet.inlet = network.hub.attach(outlet)
    outlet.say(_identify(participant))
    while (await outlet.take())["op"] != "ready":
        pass
    return outlet


async def _send(ann: Client, sizes: list[int]) -> list[int]:
    """Send texts of these sizes to bob; returns their positions."""
    results = [await ann.call("send_text_message", to="bob", text="x" * size) for size in sizes]
    return [integer(result, "seq") for result in results if isinstance(result, dict)]


async def test_events_that_nobody_reads_wait_in_the_log() -> None:
    async with LocalNetwork() as network:
        bob = await _join_slowly(network, "bob")
        ann = await network.join("ann", "human")
        sent = await _send(ann, [BIG] * 100)
        assert bob.most < UNSENT
        got = [integer(await bob.take_event(), "seq") for _ in sent]
        assert got == sent
        assert bob.closed is None


async def test_a_stream_goes_on_though_nothing_is_acknowledged_while_it_is_read() -> None:
    async with LocalNetwork() as network:
        bob = await _join_slowly(network, "bob")
        ann = await network.join("ann", "human")
        asked = asyncio.create_task(_send(ann, [BIG] * 60))
        got = [integer(await bob.take_event(), "seq") for _ in range(60)]
        assert got == await asked


async def test_answers_nobody_reads_hold_back_events_until_they_are_read() -> None:
    async with LocalNetwork() as network:
        bob = await _join_slowly(network, "bob")
        ann = await network.join("ann", "human")
        await _send(ann, [BIG] * 20)
        for _ in range(20):
            event = await bob.take_event()
        bob.say({"op": "ack", "seq": event["seq"]})  # nothing is in flight from here on
        args: Frame = {"thread": "dm.ann.bob", "limit": 20}
        for n in range(4):
            bob.say({"op": "call", "ref": str(n), "name": "read_thread", "args": args})
        await ann.call("list_participants")
        sent = await _send(ann, [BIG] * 20)
        answered = 0
        got: list[JsonValue] = []
        while len(got) < 20 or answered < 4:
            frame = await bob.take()
            answered += frame["op"] == "result"
            got += [frame["seq"]] if frame["op"] == "event" else []
        assert got == sent


async def test_ready_stays_readable_for_one_with_many_threads_of_large_messages() -> None:
    async with LocalNetwork() as network:
        ann = await network.join("ann", "human")
        for n in range(40):
            await network.join(f"bob{n}", "human")
            await ann.call("send_text_message", to=f"bob{n}", text="x" * BIG)
        tab = SlowOutlet()
        tab.inlet = network.hub.attach(tab)
        hello = await tab.take()
        cursor: Frame = {"epoch": hello["epoch"], "seq": 40}
        tab.say({**_identify("ann"), "cursor": cursor})
        ready = await tab.take()
        threads = ready["threads"]
        assert isinstance(threads, list)
        assert 5 < len(threads) < 40
        assert isinstance(threads[0], dict)
        assert threads[0]["id"] == "dm.ann.bob39", "the most recently active ones are there"
        assert tab.most < UNSENT


async def test_a_page_of_large_messages_is_short_and_says_that_there_is_more() -> None:
    async with LocalNetwork() as network:
        ann = await network.join("ann", "human")
        await network.join("bob", "human")
        sent = await _send(ann, [BIG] * 12)
        found: list[int] = []
        before = None
        while True:
            page = await ann.call("read_thread", thread="direct_bob", limit=100, before=before)
            assert isinstance(page, dict)
            messages = page["messages"]
            assert isinstance(messages, list)
            rows = [message for message in messages if isinstance(message, dict)]
            assert 1 <= len(rows) < 12
            found = [integer(row, "seq") for row in rows] + found
            if not page["more"]:
                break
            before = rows[0]["tseq"]
        assert found == sent


@pytest.mark.parametrize("reading", [1, 3])
async def test_memory_for_a_slow_reader_is_bounded_whatever_is_sent(reading: int) -> None:
    @settings(max_examples=5, deadline=None, database=None)
    @given(st.lists(st.sampled_from([1, 200, 5_000, BIG]), min_size=20, max_size=60))
    def each(sizes: list[int]) -> None:
        tried.append(sizes)

    tried: list[list[int]] = []
    each()
    for sizes in tried:
        async with LocalNetwork() as network:
            bob = await _join_slowly(network, "bob")
            ann = await network.join("ann", "human")
            sending = asyncio.create_task(_send(ann, sizes))
            got: list[int] = []
            while len(got) < len(sizes):
                for _ in range(min(reading, len(sizes) - len(got))):
                    event = await bob.take_event()
                    got.append(integer(event, "seq"))
                    assert len(str(inside(event, "message")["content"])) == sizes[len(got) - 1]
                bob.say({"op": "ack", "seq": got[-1]})
            assert got == await sending
            assert bob.most < UNSENT
