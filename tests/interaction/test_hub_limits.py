"""Limits, bad input, windows: what one peer does stays its own affair."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.interaction.peers import Networks, config

BAD = [
    b"",
    b"hello",
    b"[]",
    b"\xff\xff",
    b'{"op":"call","ref":"r","name":"reply","args":{"a":NaN}}',
    b'{"op":"call","ref":"r","name":"send_text_message","args":{"to":"bob","text":"\\ud800"}}',
    b'{"op":"call","ref":"r","name":"send_text_message","args":{"to":"bob","text":"\\u0000"}}',
    b'{"op":"call","ref":"r","name":"send_message","args":{"to":"bob","content":1e999}}',
    b'{"op":"call","ref":"r","name":"send_message","args":{"to":"bob","content":%b}}'
    % (b"[" * 40 + b"]" * 40),
    b'{"op":"call","ref":"r","name":"send_text_message","args":{"to":"bob","to":"bob"}}',
    b'{"op":"call","ref":"r","name":"send_text_message","args":{"to":7,"text":"x"}}',
    b'{"op":"call","ref":"r","name":"no_such","args":{}}',
    b'{"op":"dance"}',
    b'{"op":"ack","seq":99}',
    b'{"op":"identify","version":"hubbub.v1","participant":"x","kind":"human"}',
]


@pytest.mark.behaviour("B-8")
@pytest.mark.parametrize("frame", BAD)
async def test_a_bad_frame_is_one_error_and_the_conversation_goes_on(
    networks: Networks, frame: bytes
) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.send_raw(frame)
        error = await ann.expect("error")
        assert error["code"] in ("bad_frame", "bad_request", "unknown_operation") or (
            error["code"] == "already_identified"
        )
        assert error["message"]
        assert (await ann.say("bob", "still here"))["seq"] == 1
        assert await bob.texts() == ["still here"]


@pytest.mark.behaviour("B-1")
async def test_a_frame_over_the_limit_is_refused_and_the_conversation_goes_on(
    networks: Networks,
) -> None:
    file = config(network={"limits": {"frame": 2048, "text": 1024}})
    async with networks.start(file) as network:
        ann = await network.join("ann")
        await network.join("bob")
        await ann.send_raw(b'{"op":"signal","type":"x","data":"' + b"x" * 2048 + b'"}')
        error = await ann.expect("error")
        assert error["code"] == "too_large"
        assert "2048" in error["message"]
        fits = await ann.ask("send_text_message", to="bob", text="ä" * 512)
        assert fits["op"] == "result"


@pytest.mark.behaviour("B-2")
async def test_a_text_has_at_most_so_many_bytes_in_utf8(networks: Networks) -> None:
    async with networks.start(config(network={"limits": {"text": 100}})) as network:
        ann = await network.join("ann")
        await network.join("bob")
        assert await ann.say("bob", "x" * 100)
        for args in ({"text": "x" * 101}, {"text": "ä" * 51}, {"text": "\U0001f600" * 26}):
            error = await ann.ask("send_text_message", to="bob", **args)
            assert error["code"] == "too_large"
            assert "at most 100 bytes" in error["message"]
        content = {"a": "x" * 90}
        error = await ann.ask("send_message", to="bob", content={**content, "b": "xxxxx"})
        assert error["code"] == "too_large"
        error = await ann.ask("send_message", to="bob", content=1, text_representation="y" * 101)
        assert error["message"].startswith("text_representation: ")
        assert (await ann.ask("send_text_message", to="bob", text=""))["code"] == "bad_request"


@pytest.mark.behaviour("B-3")
async def test_who_asks_too_much_is_told_how_long_to_wait(in_memory: Networks) -> None:
    clock = HandClock()
    file = config(network={"limits": {"calls_per_second": 2, "burst": 3}})
    async with in_memory.start(file, clock=clock) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        answers = [await ann.ask("list_channels") for _ in range(4)]
        assert [a["op"] for a in answers] == ["result"] * 3 + ["error"]
        refused = answers[-1]
        assert (refused["code"], refused["temporary"]) == ("rate_limited", True)
        assert refused["retry_after_s"] == 0.5
        second_tab = await network.join("ann")
        assert (await second_tab.ask("list_channels"))["code"] == "rate_limited"
        assert (await bob.ask("list_channels"))["op"] == "result"
        clock.time += 0.5
        assert (await ann.ask("list_channels"))["op"] == "result"


async def test_a_signal_costs_less_than_a_call_and_is_dropped_beyond_the_limit(
    in_memory: Networks,
) -> None:
    clock = HandClock()
    file = config(network={"limits": {"calls_per_second": 1, "burst": 4}})
    async with in_memory.start(file, clock=clock) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for n in range(30):
            await ann.send(op="signal", type="typing", data=n)
        assert (await ann.ask("list_channels"))["code"] == "rate_limited"
        await bob.sync()
        heard = [signal["data"] for signal in bob.signals if signal["type"] == "typing"]
        assert heard == list(range(len(heard)))
        assert 15 <= len(heard) <= 20


class HandClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return 1_760_000_000 + self.time

    def monotonic(self) -> float:
        return self.time


@pytest.mark.behaviour("B-3")
async def test_who_does_not_listen_to_the_limit_is_closed(in_memory: Networks) -> None:
    file = config(network={"limits": {"calls_per_second": 1, "burst": 2}})
    async with in_memory.start(file, clock=HandClock()) as network:
        ann = await network.join("ann")
        for _ in range(2 + 10 * 2 + 1):
            await ann.send(op="call", ref="1", name="list_channels")
        assert await ann.closed() == 4005


@pytest.mark.behaviour("B-3")
async def test_calls_within_the_limit_make_up_for_those_over_it(in_memory: Networks) -> None:
    clock = HandClock()
    file = config(network={"limits": {"calls_per_second": 1, "burst": 2}})
    async with in_memory.start(file, clock=clock) as network:
        ann = await network.join("ann")
        for _ in range(10 * 2 + 5):
            answers = [await ann.ask("list_channels") for _ in range(3)]
            assert [a["op"] for a in answers] == ["result", "result", "error"]
            clock.time += 2
        assert (await ann.ask("list_channels"))["op"] == "result"


@pytest.mark.behaviour("B-8")
async def test_who_sends_only_bad_frames_is_closed(networks: Networks) -> None:
    async with networks.start(config(network={"limits": {"bad_frames": 5}})) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for _ in range(5):
            await ann.send_raw(b"{")
        assert await ann.closed() == 4501
        assert len([s for s in ann.strays if s["op"] == "error"]) == 5
        assert (await bob.ask("list_channels"))["op"] == "result"


@pytest.mark.behaviour("B-8")
async def test_good_frames_make_up_for_bad_ones(in_memory: Networks) -> None:
    file = config(network={"limits": {"bad_frames": 5, "burst": 1000}})
    async with in_memory.start(file) as network:
        ann = await network.join("ann")
        for _ in range(20):
            assert (await ann.ask("send_text_message", too="bob"))["code"] == "bad_request"
            assert (await ann.ask("list_channels"))["op"] == "result"
        await ann.send_raw(b"{")
        assert (await ann.ask("list_channels"))["op"] == "result"


@pytest.mark.behaviour("B-8")
@pytest.mark.parametrize(("good", "patience"), [("ack", 5), ("call", 5 + 2)])
async def test_what_costs_the_sender_nothing_makes_up_for_no_bad_frame(
    in_memory: Networks, good: str, patience: int
) -> None:
    file = config(network={"limits": {"bad_frames": 5, "calls_per_second": 1, "burst": 2}})
    async with in_memory.start(file, clock=HandClock()) as network:
        ann = await network.join("ann")
        for _ in range(patience - 1):
            await ann.send_raw(b"{")
            await ann.send(op=good, seq=0, ref="1", name="list_channels")
        await ann.send_raw(b"{")
        assert await ann.closed() == 4501


@pytest.mark.behaviour("B-12")
async def test_a_stranger_may_send_small_frames_only(networks: Networks) -> None:
    async with networks.start() as network:
        eve = await network.attach()
        await eve.send(op="identify", token="x" * 17_000)
        error = await eve.expect("error")
        assert (error["code"], "at most 16384" in error["message"]) == ("too_large", True)
        await eve.identify("eve", card={"description": "x" * 8000})


@pytest.mark.behaviour("B-12")
async def test_a_stranger_may_send_ten_frames_only(networks: Networks) -> None:
    async with networks.start() as network:
        eve = await network.attach()
        for _ in range(11):
            await eve.send(op="call", ref="1", name="list_channels")
        assert await eve.closed() == 4501
        polite = await network.attach()
        for _ in range(9):
            await polite.send(op="ack", seq=1)
        for _ in range(9):
            assert (await polite.expect("error"))["code"] == "not_identified"
        await polite.identify("eve")


@pytest.mark.behaviour("P-17")
async def test_so_many_events_fly_unacknowledged_and_no_more(networks: Networks) -> None:
    async with networks.start(config(network={"limits": {"unacknowledged": 8}})) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        texts = [str(n) for n in range(30)]
        for text in texts:
            await ann.say("bob", text)
        seen = [event["message"]["content"] for event in await bob.take(8)]
        while len(seen) < 30:
            await bob.ack(len(seen))
            events = await bob.take(min(8, 30 - len(seen)))
            seen += [event["message"]["content"] for event in events]
            assert events[0]["prev"] == events[0]["seq"] - 1
        assert seen == texts
        await bob.ack(30)
        await ann.say("bob", "live again")
        assert await bob.take_texts(1) == ["live again"]


@pytest.mark.behaviour("P-17")
async def test_acknowledging_half_the_window_opens_it_again(networks: Networks) -> None:
    async with networks.start(config(network={"limits": {"unacknowledged": 8}})) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for n in range(12):
            await ann.say("bob", str(n))
        await bob.take(8)
        await bob.ack(3)
        assert await bob.sync() == []
        await bob.ack(4)
        assert await bob.take_texts(4) == ["8", "9", "10", "11"]


@pytest.mark.behaviour("P-17")
async def test_a_window_of_one_works_like_a_telegraph(networks: Networks) -> None:
    async with networks.start(config(network={"limits": {"unacknowledged": 1}})) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for n in range(5):
            await ann.say("bob", str(n))
        for n in range(5):
            (event,) = await bob.take(1)
            assert event["message"]["content"] == str(n)
            await bob.ack(event["seq"])


@pytest.mark.behaviour("P-17")
async def test_what_arrives_while_a_page_is_read_is_not_lost(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await bob.close()
        for n in range(60):
            await ann.say("bob", str(n))

        async def speak() -> None:
            for n in range(60, 90):
                await ann.say("bob", str(n))

        async with asyncio.TaskGroup() as group:
            group.create_task(speak())
            back = await network.join("bob")
            await back.until(lambda: len(back.events) == 90)
        seen = [event["message"]["content"] for event in back.events]
        assert seen == [str(n) for n in range(90)]
        prevs = [event["prev"] for event in back.events]
        assert prevs == [0, *(event["seq"] for event in back.events[:-1])]


@pytest.mark.behaviour("P-6")
async def test_only_what_was_sent_can_be_acknowledged(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.say("bob", "1")
        await bob.take(1)
        await bob.ack(2)
        error = await bob.expect("error")
        assert error["code"] == "bad_request"
        assert "seq" in error["message"]
        await bob.ack(1)
        await bob.ack(0)  # older than what is acknowledged: nothing to do
        await bob.sync()
        known = network.hub.state.get("bob")
        assert known is not None
        assert known.cursor == 1


async def test_frames_of_a_closed_session_are_passed_over(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        older = await network.join("calc", "agent")
        session = network.hub.fanout.of("calc")[0]
        await network.join("calc", "agent")
        session.receive(json.dumps({"op": "call", "ref": "1", "name": "list_channels"}).encode())
        session.lost()
        assert await older.closed() == 4503
