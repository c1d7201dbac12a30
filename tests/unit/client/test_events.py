"""The event stream of a client: order, acknowledgements and reconnects."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from hubbub.client import Backoff
from hubbub.client.items import MAX_SIGNALS
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Cursor, Event, Signal
from tests.interaction.stop_harness import HandClock
from tests.unit.client.peer import (
    Answer,
    Connection,
    Consumer,
    Frame,
    Peer,
    RecordedDelays,
    soon,
)


async def events(consumer: Consumer, count: int) -> list[int]:
    return [(await consumer.event()).seq for _ in range(count)]


def chain(connection: Connection, *seqs: int) -> None:
    """Send events after the first number."""
    for prev, seq in pairwise(seqs):
        connection.event(seq, prev)


async def test_the_stream_starts_with_ready_and_continues_with_events_in_order(
    any_peer: Peer,
) -> None:
    async with any_peer.client() as client:
        connection, consumer = await any_peer.connection(), Consumer(client)
        chain(connection, 0, 3, 4, 9)
        connection.send(op="fireworks", colour="of a later version")
        connection.event(10, 9, "grüße 🙂")
        assert (await consumer.ready()).resumed
        assert await events(consumer, 3) == [3, 4, 9]
        message = (await consumer.event()).message
        assert (message.id, message.text, message.sender_id) == ("m10", "grüße 🙂", "bob")


async def test_a_second_simultaneous_consumer_of_events_is_an_error(peer: Peer) -> None:
    async with peer.client() as client:
        chain(await peer.connection(), 0, 1, 2)
        async for item in client.events():
            if isinstance(item, Event):
                break
        second = Consumer(client)
        assert (await second.event()).seq == 2
        waiting = asyncio.create_task(second.next())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="consumer"):
            await Consumer(client).next()
        waiting.cancel()


async def test_unacknowledged_events_are_requested_again_but_handed_out_once(
    any_peer: Peer,
) -> None:
    async with any_peer.client() as client:
        connection, consumer = await any_peer.connection(), Consumer(client)
        chain(connection, 0, 1, 2, 3, 4)
        await consumer.ready()
        assert await events(consumer, 3) == [1, 2, 3]
        await client.ack(2)
        await connection.frame("ack")
        connection.drop()
        again = await any_peer.connection()
        chain(again, 2, 3, 4, 5)
        assert await events(consumer, 1) == [4]
        await consumer.disconnected()
        assert (await consumer.ready()).resumed
        assert await events(consumer, 1) == [5]
    assert again.identify is not None
    assert again.identify.cursor == Cursor(epoch="epoch-1", seq=2, received=4)


@pytest.mark.behaviour("C-2")
async def test_an_event_behind_a_gap_is_never_handed_out(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, 1)
        connection.event(3, 2)
        again = await peer.connection()
        chain(again, 0, 1, 2, 3)
        await consumer.ready()
        assert await events(consumer, 1) == [1]
        assert (await consumer.disconnected()).code == CloseCode.STATE_LOST
        await consumer.ready()
        assert await events(consumer, 2) == [2, 3]
        again.event(3, 3)  # an event that does not move forward is a gap too
        assert (await consumer.disconnected()).code == CloseCode.STATE_LOST
    await soon(connection.gone.wait())


@pytest.mark.parametrize(
    "answer",
    [
        Answer(resumed=False, cursor=0, epoch="epoch-2"),
        Answer(resumed=True, cursor=9),  # beyond the last received event
        Answer(resumed=True, cursor=0, epoch="epoch-2"),  # despite `resumed`
    ],
    ids=["not-resumed", "beyond", "epoch"],
)
async def test_a_fresh_start_drops_queued_events_and_is_reported(
    peer: Peer, answer: Answer
) -> None:
    peer.answers += [Answer(), answer]
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        await consumer.ready()
        chain(connection, 0, 1, 2)
        assert await events(consumer, 1) == [1]
        connection.drop()
        again = await peer.rejoined(client)
        start = answer.cursor or 0
        chain(again, start, start + 1, start + 2)
        fresh = await consumer.ready()
        assert (fresh.resumed, client.ready.resumed, fresh.cursor) == (False, False, start)
        assert client.hello.epoch == answer.epoch
        assert await events(consumer, 2) == [start + 1, start + 2]


async def test_acknowledgements_are_batched_and_only_grow(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, *range(1, 12))
        await consumer.ready()
        await events(consumer, 10)
        await client.ack(11)  # ignored: this event was not handed out
        assert client.cursor == Cursor(epoch="epoch-1", seq=0)
        for seq in (3, 9, 4, 9):
            await client.ack(seq)
        assert (await connection.frame("ack"))["seq"] == 9
        assert client.cursor == Cursor(epoch="epoch-1", seq=9)
        await client.ack(5)
        await client.ack(10)  # flushed on leaving
    assert await connection.ended() == [{"op": "ack", "seq": 10}]


async def test_an_acknowledgement_after_a_reconnect_waits_until_the_event_is_sent_again(
    any_peer: Peer,
) -> None:
    """The hub refuses an `ack` beyond the last event it sent on this connection."""
    async with any_peer.client() as client:
        connection, consumer = await any_peer.connection(), Consumer(client)
        chain(connection, 0, 1, 2, 3)
        await consumer.ready()
        await events(consumer, 3)
        connection.drop()
        again = await any_peer.connection()
        await consumer.disconnected()
        await consumer.ready()
        await client.ack(3)
        client.post("list_participants")
        await again.call()
        chain(again, 0, 1)
        assert (await again.frame("ack"))["seq"] == 1
        chain(again, 1, 2, 3)
        while (await again.frame("ack"))["seq"] != 3:
            pass


async def test_signals_go_both_ways_and_are_dropped_while_disconnected(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        await consumer.ready()
        await client.signal("typing", "dm.ann.bob", {"on": True})
        sent = {"type": "typing", "thread_id": "dm.ann.bob", "data": {"on": True}}
        assert await connection.frame("signal") == {"op": "signal", **sent}
        connection.send(op="signal", type="activity", sender="bob", data="thinking")
        assert await consumer.next() == Signal(type="activity", sender="bob", data="thinking")
        peer.away = True
        connection.drop()
        await consumer.disconnected()
        await client.signal("typing")
        client.post("list_participants")
        peer.away = False
        again = await peer.connection()
        await again.call()
    assert await again.ended() == []


async def test_a_flood_of_signals_drops_old_signals_but_no_events(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        await consumer.ready()
        connection.event(1, 0)
        for n in range(1000):
            connection.send(op="signal", type="activity", data=n)
        connection.event(2, 1)
        client.post("list_participants")
        await connection.call()
        assert (await consumer.event()).seq == 1
        signals = [await consumer.next() for _ in range(MAX_SIGNALS)]
        assert [s.data for s in signals if isinstance(s, Signal)] == list(range(744, 1000))
        assert (await consumer.event()).seq == 2


@pytest.mark.behaviour("C-3")
async def test_a_lost_connection_is_reported_with_the_delay_before_the_next_attempt(
    peer: Peer,
) -> None:
    delays, clock = RecordedDelays(), HandClock()
    backoff = Backoff(random=lambda: 1.0, sleep=delays, steady_s=10)
    async with peer.client(backoff=backoff, clock=clock) as client:
        consumer = Consumer(client)
        await consumer.ready()
        for held, delay in ((0, 0.1), (9, 0.2), (1, 0.4), (10, 0.1)):
            clock.wall += held  # a steady connection resets the delay
            (await peer.connection()).drop(4002, "slow")
            lost = await consumer.disconnected()
            assert (lost.code, lost.reason) == (4002, "slow")
            assert lost.retry_in_s == pytest.approx(delay)
            await consumer.ready()
        assert delays == pytest.approx([0.1, 0.2, 0.4, 0.1])


async def test_only_the_latest_failed_attempt_to_reconnect_is_queued(peer: Peer) -> None:
    attempts, tried = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def sleep(delay: float) -> None:
        tried.release()
        await attempts.acquire()

    async with peer.client(backoff=Backoff(random=lambda: 1.0, sleep=sleep)) as client:
        peer.away = True
        (await peer.connection()).drop()
        for _ in range(4):
            await soon(tried.acquire())
            attempts.release()
        await soon(tried.acquire())
        consumer = Consumer(client)
        await consumer.ready()
        lost = await consumer.disconnected()
        assert (lost.code, lost.reason) == (1006, "Connection refused")
        assert lost.retry_in_s == pytest.approx(1.6)
        peer.away = False
        attempts.release()
        assert (await consumer.ready()).resumed


async def test_a_client_of_a_draining_hub_finishes_calls_and_waits_for_the_hubs_delay(
    any_peer: Peer,
) -> None:
    delays = RecordedDelays()
    async with any_peer.client(backoff=Backoff(random=lambda: 0.5, sleep=delays)) as client:
        connection, consumer = await any_peer.connection(), Consumer(client)
        await consumer.ready()
        reply = client.post("list_participants")
        connection.send(op="reconnect", after_s=4)
        connection.result(await connection.call(), "answered while draining")
        assert await soon(reply) == "answered while draining"
        connection.drop(4006, "drain")
        lost = await consumer.disconnected()
        assert lost.code == CloseCode.DRAIN
        assert lost.retry_in_s == pytest.approx(5.0)
        await consumer.ready()
    assert delays == pytest.approx([5.0])


@pytest.mark.behaviour("C-3", "P-20")
async def test_a_final_close_code_ends_the_stream_and_any_other_reconnects(peer: Peer) -> None:
    for code in (4500, 4501, 4502, 4503, 4504, 4999, 1009):
        before = peer.opened
        async with peer.client() as client:
            connection, consumer = await peer.connection(), Consumer(client)
            chain(connection, 0, 1)
            connection.drop(code, "no")
            await consumer.ready()
            assert await events(consumer, 1) == [1], "queued events are still handed out"
            end = await consumer.end()
            assert (end.code, end.reason, peer.opened) == (code, "no", before + 1)
    async with peer.client() as client:
        consumer = Consumer(client)
        await consumer.ready()
        for code in (1000, 1001, 1011, 1012, 4000, 4001, 4003, 4005, 4499):
            (await peer.connection()).drop(code)
            assert (await consumer.disconnected()).code == code
            assert (await consumer.ready()).resumed


async def test_a_refused_reconnect_ends_the_stream_unless_it_is_temporary(peer: Peer) -> None:
    busy: Frame = {"code": "store_unavailable", "message": "disk full", "temporary": True}
    gone: Frame = {"code": "auth_failed", "message": "revoked"}
    peer.answers += [Answer(), Answer(error={**busy, "retry_after_s": 0.001}), Answer(error=gone)]
    async with peer.client() as client:
        (await peer.connection()).drop()
        consumer = Consumer(client)
        await consumer.ready()
        await consumer.disconnected()
        lost = await consumer.disconnected()
        assert (lost.reason, lost.retry_in_s >= 0.001) == ("disk full", True)
        end = await consumer.end()
    assert (end.code, end.reason) == (CloseCode.AUTH, "revoked")


async def test_an_unreadable_frame_ends_the_stream_with_a_reason(peer: Peer) -> None:
    for frame in (b"{", b"[]", b'{"op":"event","seq":"one"}', b"\xff"):
        async with peer.client() as client:
            connection, consumer = await peer.connection(), Consumer(client)
            connection.outlet.write(frame)
            await consumer.ready()
            end = await consumer.end()
            assert (end.code, "unreadable" in end.reason) == (CloseCode.BAD_FRAME, True)
            await soon(connection.gone.wait())


async def test_a_failure_inside_the_client_is_raised_when_leaving_it(peer: Peer) -> None:
    async def sleep(delay: float) -> None:
        raise ZeroDivisionError

    async def live() -> None:
        async with peer.client(backoff=Backoff(sleep=sleep)) as client:
            (await peer.connection()).drop()
            consumer = Consumer(client)
            await consumer.ready()
            await consumer.disconnected()
            await consumer.end()

    with pytest.raises(ZeroDivisionError):
        await live()
