"""The hub buffers little for a slow reader; the rest waits in the log."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.client import Client
from hubbub.protocol.operations import ThreadPage
from hubbub.protocol.wire import Inlet
from hubbub.testing.network import LocalNetwork
from tests.examples import examples
from tests.interaction.peers import Frame, config

BIG = 50_000
UNSENT = 1024 * 1024
"""The default of `limits.unsent`."""


class SlowOutlet:
    """A connection whose peer reads one frame per call of `take`."""

    def __init__(self) -> None:
        self.inlet: Inlet
        self.most = 0
        self.closed: int | None = None
        self._frames: deque[bytes] = deque()
        self._written = asyncio.Event()

    def write(self, frame: bytes) -> None:
        self._frames.append(frame)
        self.most = max(self.most, self.unsent())
        self._written.set()

    def close(self, code: int, reason: str) -> None:
        self.closed = code

    def identified(self) -> None:
        pass

    def unsent(self) -> int:
        return sum(map(len, self._frames))

    async def take(self) -> Frame:
        """The next frame, once it has been written."""
        while not self._frames:
            self._written.clear()
            await self._written.wait()
        frame: Frame = json.loads(self._frames.popleft())
        if not self._frames:
            self.inlet.drained()
        return frame

    async def take_event(self) -> Frame:
        while (frame := await self.take())["op"] != "event":
            pass
        return frame

    def send(self, frame: Frame) -> None:
        self.inlet.receive(json.dumps(frame).encode())


def _identify(participant: str) -> Frame:
    frame: Frame = {"op": "identify", "version": "hubbub.v1"}
    return {**frame, "participant": participant, "kind": "human"}


async def _bob_and_ann(network: LocalNetwork) -> tuple[SlowOutlet, Client]:
    """Bob, a slow reader, and ann, who writes to him."""
    bob = SlowOutlet()
    bob.inlet = network.hub.gateway.attach(bob)
    bob.send(_identify("bob"))
    while (await bob.take())["op"] != "ready":
        pass
    return bob, await network.join("ann", "human")


async def _send(ann: Client, sizes: list[int]) -> list[int]:
    """Sends texts of these sizes to bob; returns their positions."""
    results: list[Any] = [
        await ann.call("send_text_message", to="bob", text="x" * size) for size in sizes
    ]
    return [result["seq"] for result in results]


async def test_unread_events_wait_in_the_log() -> None:
    quick = config(network={"limits": {"burst": 1000}})
    async with LocalNetwork(quick) as network:
        bob, ann = await _bob_and_ann(network)
        sent = await _send(ann, [BIG] * 100)
        assert bob.most < UNSENT
        assert [(await bob.take_event())["seq"] for _ in sent] == sent
        sending = asyncio.create_task(_send(ann, [BIG] * 60))  # read, but never acknowledged
        received = [(await bob.take_event())["seq"] for _ in range(60)]
        assert (received, bob.closed) == (await sending, None)


async def test_unread_results_hold_back_events() -> None:
    async with LocalNetwork() as network:
        bob, ann = await _bob_and_ann(network)
        await _send(ann, [BIG] * 20)
        for _ in range(20):
            event = await bob.take_event()
        bob.send({"op": "ack", "seq": event["seq"]})  # now nothing is in flight
        args: Frame = {"thread": "dm.ann.bob", "limit": 20}
        for n in range(4):
            bob.send({"op": "call", "ref": str(n), "name": "read_thread", "args": args})
        await ann.call("list_participants")
        sent = await _send(ann, [BIG] * 20)
        answered = 0
        received: list[JsonValue] = []
        while len(received) < 20 or answered < 4:
            frame = await bob.take()
            answered += frame["op"] == "result"
            received += [frame["seq"]] if frame["op"] == "event" else []
        assert received == sent


async def test_ready_and_pages_stay_small_for_a_participant_with_large_messages() -> None:
    async with LocalNetwork() as network:
        ann = await network.join("ann", "human")
        for n in range(40):
            await network.join(f"bob{n}", "human")
            await ann.call("send_text_message", to=f"bob{n}", text="x" * BIG)
        tab = SlowOutlet()
        tab.inlet = network.hub.gateway.attach(tab)
        hello = await tab.take()
        cursor: Frame = {"epoch": hello["epoch"], "seq": 40}
        tab.send({**_identify("ann"), "cursor": cursor})
        threads = (await tab.take())["threads"]
        assert 5 < len(threads) < 40
        assert threads[0]["id"] == "dm.ann.bob39", "the most recently active thread is missing"
        assert tab.most < UNSENT
        await network.join("bob", "human")
        sent, read = await _send(ann, [BIG] * 12), list[int]()
        more, before = True, None
        while more:
            answer = await ann.call("read_thread", thread="direct_bob", limit=100, before=before)
            page = ThreadPage.model_validate(answer)
            assert 1 <= len(page.messages) < 12
            read = [message.seq for message in page.messages] + read
            more, before = page.more, page.messages[0].tseq
        assert read == sent


@settings(max_examples=examples(5))
@given(st.lists(st.sampled_from([1, 200, 5_000, BIG]), min_size=20, max_size=60), st.integers(1, 3))
async def test_memory_used_for_a_slow_reader_is_bounded(sizes: list[int], reading: int) -> None:
    async with LocalNetwork() as network:
        bob, ann = await _bob_and_ann(network)
        sending = asyncio.create_task(_send(ann, sizes))
        received: list[int] = []
        while len(received) < len(sizes):
            for _ in range(min(reading, len(sizes) - len(received))):
                event = await bob.take_event()
                received.append(event["seq"])
                assert len(event["message"]["content"]) == sizes[len(received) - 1]
            bob.send({"op": "ack", "seq": received[-1]})
        assert received == await sending
        assert bob.most < UNSENT
