"""Limits, invalid input and windows: a peer's misbehaviour affects only itself."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.interaction.peers import GATEWAY, Network, Networks, config, eventually
from tests.interaction.stop_harness import HandClock

CALL = b'{"op":"call","ref":"r","name":"%s","args":%s}'
BAD = [
    b"",
    b"hello",
    b"[]",
    CALL % (b"reply", b'{"a":NaN}'),
    CALL % (b"send_text_message", b'{"to":"bob","text":"\\ud800"}'),
    CALL % (b"send_text_message", b'{"to":"bob","text":"\\u0000"}'),
    CALL % (b"send_message", b'{"to":"bob","content":1e999}'),
    CALL % (b"send_message", b'{"to":"bob","content":%b}' % (b"[" * 40 + b"]" * 40)),
    CALL % (b"send_text_message", b'{"to":"bob","to":"bob"}'),
    CALL % (b"send_text_message", b'{"to":7,"text":"x"}'),
    CALL % (b"no_such", b"{}"),
    b'{"op":"dance"}',
    b'{"op":"ack","seq":99}',
    b'{"op":"identify","version":"hubbub.v1","participant":"x","kind":"human"}',
]
CODES = ("bad_frame", "bad_request", "unknown_operation", "already_identified")


@pytest.mark.behaviour("B-8")
async def test_an_invalid_frame_is_one_error_and_the_session_continues(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for number, frame in enumerate(BAD, 1):
            await ann.send_raw(frame)
            error = await ann.expect("error")
            assert error["code"] in CODES, frame
            assert error["message"]
            assert (await ann.say("bob", "still here"))["seq"] == number
            assert await bob.texts() == ["still here"]


@pytest.mark.behaviour("B-1", "B-2")
async def test_an_oversized_frame_or_text_is_refused_and_the_session_continues(
    networks: Networks,
) -> None:
    file = config(network={"limits": {"frame": 2048, "text": 100}})
    async with networks.start(file) as network:
        ann, _ = await network.join("ann"), await network.join("bob")
        await ann.send_raw(b'{"op":"signal","type":"x","data":"' + b"x" * 2048 + b'"}')
        error = await ann.expect("error")
        assert (error["code"], "2048" in error["message"]) == ("too_large", True)
        assert await ann.say("bob", "x" * 100)
        for text in ("x" * 101, "ä" * 51, "\U0001f600" * 26):
            error = await ann.ask("send_text_message", to="bob", text=text)
            assert error["code"] == "too_large"
            assert "at most 100 bytes" in error["message"]
        error = await ann.ask("send_message", to="bob", content={"a": "x" * 90, "b": "xxxxx"})
        assert error["code"] == "too_large"
        error = await ann.ask("send_message", to="bob", content=1, text_representation="y" * 101)
        assert error["message"].startswith("text_representation: ")
        assert (await ann.ask("send_text_message", to="bob", text=""))["code"] == "bad_request"
        error = await ann.ask("send_message", to="bob", content=None)  # no answer could show it
        assert error["message"].startswith("content: null")


@pytest.mark.behaviour("B-3")
async def test_calls_over_the_limit_get_a_delay_and_finally_close_the_connection(
    in_memory: Networks,
) -> None:
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
        clock.wall += 0.5
        for _ in range(10 * 3 + 5):  # calls within the limit compensate for those over it
            assert (await ann.ask("list_channels"))["op"] == "result"
            assert (await ann.ask("list_channels"))["op"] == "error"
            clock.wall += 0.5
        await ann.ask("list_channels")
        for _ in range(10 * 3 + 1):
            await ann.send(op="call", ref="1", name="list_channels")
        assert await ann.closed() == 4005
        assert ann.why == "too many calls over the limit"


async def test_a_signal_costs_less_than_a_call_and_is_dropped_over_the_limit(
    in_memory: Networks,
) -> None:
    file = config(network={"limits": {"calls_per_second": 1, "burst": 4}})
    async with in_memory.start(file, clock=HandClock()) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for n in range(30):
            await ann.send(op="signal", type="typing", data=n)
        assert (await ann.ask("list_channels"))["code"] == "rate_limited"
        await bob.sync()
        received = [signal["data"] for signal in bob.signals if signal["type"] == "typing"]
        assert received == list(range(len(received)))
        assert 15 <= len(received) <= 20


@pytest.mark.behaviour("B-8")
async def test_bad_frames_close_the_connection_unless_valid_calls_compensate(
    networks: Networks,
) -> None:
    file = config(network={"limits": {"bad_frames": 5, "burst": 1000}})
    async with networks.start(file) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for _ in range(5):
            await ann.send_raw(b"{")
        assert await ann.closed() == 4501
        assert ann.why == "too many bad frames"
        assert len([stray for stray in ann.strays if stray["op"] == "error"]) == 5
        assert network.bad_frames == 5
        for _ in range(8):
            assert (await bob.ask("send_text_message", too="bob"))["code"] == "bad_request"
            assert (await bob.ask("list_channels"))["op"] == "result"
        cat = await network.join("cat")
        for _ in range(8):  # so do acknowledgements of events
            await bob.say("cat", "x")
            await cat.ack((await cat.event())["seq"])
            await cat.send_raw(b"{")
        await cat.sync()


@pytest.mark.behaviour("B-8")
@pytest.mark.parametrize(("good", "patience"), [("ack", 5), ("call", 5 + 2)])
async def test_acknowledgements_and_refused_calls_do_not_compensate_for_bad_frames(
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
async def test_a_peer_can_send_at_most_ten_small_frames_before_ready(networks: Networks) -> None:
    async with networks.start() as network:
        eve = await network.attach()
        for _ in range(11):
            await eve.send(op="call", ref="1", name="list_channels")
        assert await eve.closed() == 4501
        assert eve.why == "more than 10 frames before `ready`"
        polite = await network.attach()
        await polite.send(op="identify", token="x" * 17_000)
        error = await polite.expect("error")
        assert (error["code"], "at most 16384" in error["message"]) == ("too_large", True)
        for _ in range(8):
            await polite.send(op="ack", seq=1)
            assert (await polite.expect("error"))["code"] == "not_identified"
        await polite.identify("eve", card={"description": "x" * 8000})


@pytest.mark.behaviour("P-17")
async def test_the_number_of_unacknowledged_events_is_limited(networks: Networks) -> None:
    async with networks.start(config(network={"limits": {"unacknowledged": 8}})) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        texts = [str(n) for n in range(24)]
        for text in texts:
            await ann.say("bob", text)
        assert await bob.take_texts(8) == texts[:8]
        await bob.ack(3)
        assert await bob.sync() == [], "the window opens again at half its size"
        await bob.ack(4)
        events = await bob.take(4)
        assert [event["prev"] for event in events] == [8, 9, 10, 11]
        await bob.ack(12)
        assert await bob.take_texts(8) == texts[12:20]
        await bob.ack(20)
        assert await bob.take_texts(4) == texts[20:]
        await bob.ack(24)
        await ann.say("bob", "live again")
        assert await bob.take_texts(1) == ["live again"]


@pytest.mark.behaviour("P-17")
async def test_events_that_a_client_received_before_a_resume_do_not_fill_its_window(
    in_memory: Networks,
) -> None:
    async with in_memory.start(config(network={"limits": {"unacknowledged": 2}})) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for text in ("one", "two"):  # ann's own messages reach her only on another socket
            await ann.say("bob", text)
        await bob.say("ann", "three")
        received = (await ann.event())["seq"]
        await ann.close()
        cursor = {"epoch": ann.hello["epoch"], "seq": 0, "received": received}
        ann = await network.join("ann", cursor=cursor)
        await bob.say("ann", "four")
        await bob.say("ann", "five")
        await bob.say("ann", "six")
        assert await ann.take_texts(5) == ["one", "two", "three", "four", "five"]


@pytest.mark.behaviour("P-17")
async def test_with_a_window_of_one_each_event_waits_for_an_acknowledgement(
    in_memory: Networks,
) -> None:
    async with in_memory.start(config(network={"limits": {"unacknowledged": 1}})) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for n in range(5):
            await ann.say("bob", str(n))
        for n in range(5):
            (event,) = await bob.take(1)
            assert event["message"]["content"] == str(n)
            await bob.ack(event["seq"])


@pytest.mark.skipif(GATEWAY, reason="gateways count what they deliver themselves")
@pytest.mark.behaviour("B-9")
async def test_events_wait_in_the_log_while_a_client_reads_nothing(in_memory: Networks) -> None:
    file = config(network={"limits": {"unsent": "200KiB", "burst": 1000}})
    async with in_memory.start(file) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        texts = [f"{n:0>30000}" for n in range(12)]
        for text in texts:
            await ann.say("bob", text)
        assert network.hub.kernel.metrics.deliveries == 5, "over half of `unsent`"
        await ann.send(op="signal", type="typing", data="lost")
        assert await bob.take_texts(12) == texts
        await ann.send(op="signal", type="typing", data="seen")
        assert (await bob.signal("typing"))["data"] == "seen"
        back = await network.join("bob", cursor={"epoch": ann.hello["epoch"], "seq": 0})
        await eventually(lambda: network.hub.kernel.metrics.deliveries == 12 + 6)
        await ann.say("bob", "new")
        events = await back.take(13)
        assert [event["message"]["content"] for event in events] == [*texts, "new"]
        assert [event["prev"] for event in events] == [0, *(e["seq"] for e in events[:-1])]


@pytest.mark.behaviour("P-17")
async def test_messages_that_arrive_during_a_catch_up_are_not_lost(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await bob.close()

        async def send(first: int, last: int) -> None:
            for n in range(first, last):
                await ann.say("bob", str(n))

        await send(0, 60)
        async with asyncio.TaskGroup() as group:
            group.create_task(send(60, 90))
            back = await network.join("bob")
            await back.until(lambda: len(back.events) == 90)
        assert [event["message"]["content"] for event in back.events] == [*map(str, range(90))]
        prevs = [event["prev"] for event in back.events]
        assert prevs == [0, *(event["seq"] for event in back.events[:-1])]


@pytest.mark.behaviour("P-6")
async def test_only_events_that_were_sent_can_be_acknowledged(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await ann.say("bob", "1")
    await bob.take(1)
    await bob.ack(2)
    error = await bob.expect("error")
    assert (error["code"], "seq" in error["message"]) == ("bad_request", True)
    await bob.ack(1)
    await bob.ack(0)  # older than the last one: no change
    await bob.sync()
    participant = network.hub.kernel.state.get("bob")
    assert participant is not None
    assert participant.cursor == 1


async def test_frames_of_a_closed_session_are_ignored(network: Network) -> None:
    older = await network.join("calc", "agent")
    session = network.hub.kernel.fanout.of("calc")[0]
    await network.join("calc", "agent")
    session.receive(json.dumps({"op": "call", "ref": "1", "name": "list_channels"}).encode())
    session.lost()
    assert await older.closed() == 4503
