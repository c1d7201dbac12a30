"""How much the hub holds for one who reads slowly, and that the rest waits in the log."""

from __future__ import annotations

import asyncio
import json
from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.client import Client
from hubbub.protocol.operations import ThreadPage
from hubbub.protocol.wire import Inlet
from hubbub.testing.network import LocalNetwork
from tests.e2e.support.peers import Frame, inside, integer
from tests.examples import examples
from tests.interaction.peers import config

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


async def _bob_and_ann(network: LocalNetwork) -> tuple[SlowOutlet, Client]:
    """Bob, who reads slowly, and ann, who writes to him."""
    bob = SlowOutlet()
    bob.inlet = network.hub.gateway.attach(bob)
    bob.say(_identify("bob"))
    while (await bob.take())["op"] != "ready":
        pass
    return bob, await network.join("ann", "human")


async def _send(ann: Client, sizes: list[int]) -> list[int]:
    """Send texts of these sizes to bob; returns their positions."""
    results = [await ann.call("send_text_message", to="bob", text="x" * size) for size in sizes]
    return [integer(result, "seq") for result in results if isinstance(result, dict)]


async def test_events_that_nobody_reads_wait_in_the_log_until_they_are_read() -> None:
    quick = config(network={"limits": {"burst": 1000}})
    async with LocalNetwork(quick) as network:
        bob, ann = await _bob_and_ann(network)
        sent = await _send(ann, [BIG] * 100)
        assert bob.most < UNSENT
        assert [integer(await bob.take_event(), "seq") for _ in sent] == sent
        asked = asyncio.create_task(_send(ann, [BIG] * 60))  # read, and never acknowledged
        got = [integer(await bob.take_event(), "seq") for _ in range(60)]
        assert (got, bob.closed) == (await asked, None)


async def test_answers_nobody_reads_hold_back_events_until_they_are_read() -> None:
    async with LocalNetwork() as network:
        bob, ann = await _bob_and_ann(network)
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


async def test_ready_and_pages_stay_readable_for_one_with_many_large_messages() -> None:
    async with LocalNetwork() as network:
        ann = await network.join("ann", "human")
        for n in range(40):
            await network.join(f"bob{n}", "human")
            await ann.call("send_text_message", to=f"bob{n}", text="x" * BIG)
        tab = SlowOutlet()
        tab.inlet = network.hub.gateway.attach(tab)
        hello = await tab.take()
        cursor: Frame = {"epoch": hello["epoch"], "seq": 40}
        tab.say({**_identify("ann"), "cursor": cursor})
        threads = (await tab.take())["threads"]
        assert isinstance(threads, list)
        assert 5 < len(threads) < 40
        assert isinstance(threads[0], dict)
        assert threads[0]["id"] == "dm.ann.bob39", "the most recently active ones are there"
        assert tab.most < UNSENT
        await network.join("bob", "human")
        sent, found = await _send(ann, [BIG] * 12), list[int]()
        more, before = True, None
        while more:
            told = await ann.call("read_thread", thread="direct_bob", limit=100, before=before)
            page = ThreadPage.model_validate(told)
            assert 1 <= len(page.messages) < 12
            found = [message.seq for message in page.messages] + found
            more, before = page.more, page.messages[0].tseq
        assert found == sent


@settings(max_examples=examples(5))
@given(st.lists(st.sampled_from([1, 200, 5_000, BIG]), min_size=20, max_size=60), st.integers(1, 3))
async def test_memory_for_a_slow_reader_is_bounded_whatever_is_sent(
    sizes: list[int], reading: int
) -> None:
    async with LocalNetwork() as network:
        bob, ann = await _bob_and_ann(network)
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
