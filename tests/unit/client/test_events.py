"""Events: in order, without gaps, handed out once; acknowledgements; lost connections."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from hubbub.client import Backoff
from hubbub.client.items import MOST_SIGNALS
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Cursor, Event, Signal
from tests.unit.client.peer import (
    AT_ONCE,
    Answer,
    Connection,
    Consumer,
    Frame,
    Peer,
    memory_peer,
    soon,
)


async def events(consumer: Consumer, count: int) -> list[int]:
    return [(await consumer.event()).seq for _ in range(count)]


def chain(connection: Connection, *seqs: int) -> None:
    """Send events: the first number is what the first one follows."""
    for prev, seq in pairwise(seqs):
        connection.event(seq, prev)


async def test_the_stream_begins_with_ready_and_goes_on_with_events_in_order(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, 3, 4, 9)
        ready = await consumer.ready()
        assert ready.resumed
        assert await events(consumer, 3) == [3, 4, 9]


async def test_an_event_carries_its_message(peer: Peer) -> None:
    async with peer.client() as client:
        (await peer.connection()).event(5, 0, "grüße 🙂")
        consumer = Consumer(client)
        await consumer.ready()
        event = await consumer.event()
    assert (event.message.id, event.message.text, event.message.sender_id) == (
        "m5",
        "grüße 🙂",
        "bob",
    )


async def test_events_have_one_consumer(peer: Peer) -> None:
    async with peer.client() as client:
        first = Consumer(client)
        await first.ready()
        waiting = asyncio.create_task(first.next())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="consumer"):
            await Consumer(client).next()
        waiting.cancel()


async def test_a_consumer_may_stop_and_another_goes_on(peer: Peer) -> None:
    async with peer.client() as client:
        chain(await peer.connection(), 0, 1, 2)
        async for item in client.events():
            if isinstance(item, Event):
                break
        assert (await Consumer(client).event()).seq == 2


async def test_what_was_not_acknowledged_is_asked_for_again_but_not_handed_out_again(
    peer: Peer,
) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, 1, 2, 3, 4)
        await consumer.ready()
        assert await events(consumer, 3) == [1, 2, 3]
        await client.ack(2)
        await connection.frame("ack")
        connection.drop()
        again = await peer.connection()
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
        lost = await consumer.disconnected()
        assert lost.code == CloseCode.STATE_LOST
        await consumer.ready()
        assert await events(consumer, 2) == [2, 3]
    await soon(connection.gone.wait())


async def test_an_event_that_goes_backwards_is_a_gap_too(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, 5)
        connection.event(5, 5)
        await consumer.ready()
        assert await events(consumer, 1) == [5]
        assert (await consumer.disconnected()).code == CloseCode.STATE_LOST


async def test_a_fresh_start_drops_what_was_waiting_and_says_so(peer: Peer) -> None:
    peer.answers += [Answer(), Answer(resumed=False, cursor=0, epoch="epoch-2")]
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        await consumer.ready()
        chain(connection, 0, 1, 2)
        assert await events(consumer, 1) == [1]
        connection.drop()
        again = await peer.rejoined(client)
        chain(again, 0, 1, 2)
        fresh = await consumer.ready()
        assert not fresh.resumed
        assert client.hello.epoch == "epoch-2"
        assert await events(consumer, 2) == [1, 2]


async def test_a_resume_beyond_what_was_received_is_a_fresh_start(peer: Peer) -> None:
    peer.answers += [Answer(), Answer(resumed=True, cursor=9)]
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        await consumer.ready()
        chain(connection, 0, 4)
        await events(consumer, 1)
        connection.drop()
        chain(await peer.rejoined(client), 9, 10)
        ready = await consumer.ready()
        assert (ready.resumed, client.ready.resumed, ready.cursor) == (False, False, 9)
        assert await events(consumer, 1) == [10]


async def test_another_epoch_is_a_fresh_start_whatever_ready_says(peer: Peer) -> None:
    peer.answers += [Answer(), Answer(resumed=True, epoch="epoch-2")]
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        await consumer.ready()
        connection.drop()
        await peer.rejoined(client)
        assert not (await consumer.ready()).resumed


async def test_an_acknowledgement_reaches_the_hub_and_is_the_next_cursor(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, 7)
        await consumer.ready()
        await events(consumer, 1)
        await client.ack(7)
        assert (await connection.frame("ack"))["seq"] == 7
        assert client.cursor == Cursor(epoch="epoch-1", seq=7)


async def test_acknowledgements_of_one_moment_are_one_frame_and_only_grow(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, *range(1, 11))
        await consumer.ready()
        await events(consumer, 10)
        for seq in (3, 9, 4, 9):
            await client.ack(seq)
        assert (await connection.frame("ack"))["seq"] == 9
        await client.ack(5)
    assert await connection.ended() == []


async def test_what_was_not_handed_out_cannot_be_acknowledged(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, 1, 2)
        await consumer.ready()
        await events(consumer, 1)
        await client.ack(2)
        assert client.cursor == Cursor(epoch="epoch-1", seq=0)
    assert await connection.ended() == []


async def test_an_acknowledgement_while_disconnected_waits_until_the_hub_can_read_it(
    peer: Peer,
) -> None:
    """The hub refuses an `ack` beyond what it has sent on this connection."""
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, 1, 2, 3)
        await consumer.ready()
        await events(consumer, 3)
        connection.drop()
        again = await peer.connection()
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


async def test_acknowledgements_are_flushed_when_the_client_is_left(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, 1)
        await consumer.ready()
        await events(consumer, 1)
        await client.ack(1)
    assert await connection.ended() == [{"op": "ack", "seq": 1}]


async def test_signals_go_both_ways(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        await consumer.ready()
        await client.signal("typing", "dm.ann.bob", {"on": True})
        sent = await connection.frame("signal")
        assert sent == {
            "op": "signal",
            "type": "typing",
            "thread_id": "dm.ann.bob",
            "data": {"on": True},
        }
        connection.send(op="signal", type="activity", sender="bob", data="thinking")
        got = await consumer.next()
        assert got == Signal(type="activity", sender="bob", data="thinking")


async def test_a_flood_of_signals_costs_signals_never_events() -> None:
    async with memory_peer() as peer, peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        await consumer.ready()
        connection.event(1, 0)
        for n in range(1000):
            connection.send(op="signal", type="activity", data=n)
        connection.event(2, 1)
        client.post("list_participants")
        await connection.call()
        assert (await consumer.event()).seq == 1
        kept = [await consumer.next() for _ in range(MOST_SIGNALS)]
        assert [s.data for s in kept if isinstance(s, Signal)] == list(range(744, 1000))
        assert (await consumer.event()).seq == 2


async def test_a_signal_without_a_connection_is_dropped() -> None:
    async with memory_peer() as peer, peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        peer.away = True
        connection.drop()
        await consumer.ready()
        await consumer.disconnected()
        await client.signal("typing")
        client.post("list_participants")
        peer.away = False
        again = await peer.connection()
        await again.call()
    assert await again.ended() == []


@pytest.mark.behaviour("C-3")
async def test_a_lost_connection_is_told_with_the_delay_before_the_next_attempt() -> None:
    waited: list[float] = []

    async def sleep(delay: float) -> None:
        waited.append(delay)

    backoff = Backoff(random=lambda: 1.0, sleep=sleep)
    async with memory_peer() as peer, peer.client(backoff=backoff) as client:
        consumer = Consumer(client)
        await consumer.ready()
        for n in range(3):
            (await peer.connection()).drop(4002, "slow")
            lost = await consumer.disconnected()
            assert (lost.code, lost.reason) == (4002, "slow")
            assert lost.retry_in_s == pytest.approx(0.1 * 2**n)
            await consumer.ready()
    assert waited == pytest.approx([0.1, 0.2, 0.4])


async def test_attempts_that_fail_are_told_and_only_the_latest_is_kept() -> None:
    attempts = asyncio.Semaphore(0)
    tried = asyncio.Semaphore(0)

    async def sleep(delay: float) -> None:
        tried.release()
        await attempts.acquire()

    backoff = Backoff(random=lambda: 1.0, sleep=sleep)
    async with memory_peer() as peer, peer.client(backoff=backoff) as client:
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


async def test_a_connection_that_held_for_a_while_starts_the_delays_anew() -> None:
    class Hands:
        time = 0.0

        def now(self) -> float:
            return self.time

        def monotonic(self) -> float:
            return self.time

    clock = Hands()
    backoff = Backoff(first_s=0.001, random=lambda: 1.0, steady_s=10)
    async with memory_peer() as peer, peer.client(backoff=backoff, clock=clock) as client:
        consumer = Consumer(client)
        delays = []
        for seconds in (1.0, 1.0, 10.0):
            await consumer.ready()
            clock.time += seconds
            (await peer.connection()).drop()
            delays.append((await consumer.disconnected()).retry_in_s)
    assert delays == pytest.approx([0.001, 0.002, 0.001])


async def test_a_draining_hub_is_left_when_it_closes_and_for_as_long_as_it_says(
    peer: Peer,
) -> None:
    waited: list[float] = []

    async def sleep(delay: float) -> None:
        waited.append(delay)

    async with peer.client(backoff=Backoff(random=lambda: 0.5, sleep=sleep)) as client:
        connection, consumer = await peer.connection(), Consumer(client)
        await consumer.ready()
        asked = client.post("list_participants")
        connection.send(op="reconnect", after_s=4)
        connection.result(await connection.call(), "answered while draining")
        assert await soon(asked) == "answered while draining"
        connection.drop(4006, "drain")
        lost = await consumer.disconnected()
        assert lost.code == CloseCode.DRAIN
        assert lost.retry_in_s == pytest.approx(5.0)
        await consumer.ready()
    assert waited == pytest.approx([5.0])


@pytest.mark.behaviour("C-3", "P-20")
@pytest.mark.parametrize("code", [4500, 4501, 4502, 4503, 4504, 4999, 1009])
async def test_a_close_code_that_says_never_again_ends_the_stream(code: int) -> None:
    async with memory_peer() as peer, peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        chain(connection, 0, 1)
        connection.drop(code, "no")
        await consumer.ready()
        assert await events(consumer, 1) == [1], "what came before the close is still handed out"
        end = await consumer.end()
        assert (end.code, end.reason) == (code, "no")
        assert peer.opened == 1


@pytest.mark.parametrize("code", [1000, 1001, 1011, 1012, 4000, 4001, 4003, 4005, 4499])
async def test_every_other_close_code_says_come_back(code: int) -> None:
    async with memory_peer() as peer, peer.client() as client:
        (await peer.connection()).drop(code)
        consumer = Consumer(client)
        await consumer.ready()
        assert (await consumer.disconnected()).code == code
        assert (await consumer.ready()).resumed


async def test_a_token_that_was_revoked_meanwhile_ends_the_stream(peer: Peer) -> None:
    peer.answers += [Answer(), Answer(error={"code": "auth_failed", "message": "revoked"})]
    async with peer.client() as client:
        (await peer.connection()).drop()
        consumer = Consumer(client)
        await consumer.ready()
        await consumer.disconnected()
        end = await consumer.end()
    assert (end.code, end.reason) == (CloseCode.AUTH, "revoked")


async def test_a_temporary_refusal_at_the_door_is_tried_again(peer: Peer) -> None:
    busy: Frame = {"code": "store_unavailable", "message": "disk full", "temporary": True}
    peer.answers += [Answer(), Answer(error={**busy, "retry_after_s": 0.001})]
    async with peer.client() as client:
        (await peer.connection()).drop()
        consumer = Consumer(client)
        await consumer.ready()
        await consumer.disconnected()
        lost = await consumer.disconnected()
        assert lost.reason == "disk full"
        assert lost.retry_in_s >= 0.001
        await consumer.ready()


async def test_a_frame_of_a_later_version_is_passed_over(peer: Peer) -> None:
    async with peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        connection.send(op="fireworks", colour="red")
        connection.event(1, 0)
        await consumer.ready()
        assert await events(consumer, 1) == [1]


@pytest.mark.parametrize("frame", [b"{", b"[]", b'{"op":"event","seq":"one"}', b"\xff"])
async def test_an_unreadable_frame_ends_the_stream_with_a_reason(frame: bytes) -> None:
    async with memory_peer() as peer, peer.client() as client:
        connection, consumer = await peer.connection(), Consumer(client)
        connection.outlet.write(frame)
        await consumer.ready()
        end = await consumer.end()
        assert end.code == CloseCode.BAD_FRAME
        assert "unreadable" in end.reason
        await soon(connection.gone.wait())


@pytest.mark.behaviour("C-2")
async def test_nothing_is_handed_out_twice_however_often_the_connection_breaks(
    peer: Peer,
) -> None:
    log = list(range(1, 61))
    async with peer.client(backoff=AT_ONCE) as client:
        consumer = Consumer(client)
        got: list[int] = []
        connection = await peer.connection()
        for cut in range(7, 61, 7):
            assert connection.identify is not None
            start = connection.identify.cursor.seq if connection.identify.cursor else 0
            chain(connection, start, *[seq for seq in log if start < seq <= cut])
            connection.drop()
            connection = await peer.connection()
            while not got or got[-1] < cut:
                item = await consumer.next()
                if hasattr(item, "seq"):
                    got.append(item.seq)
            await client.ack(cut - 3)
    assert got == [seq for seq in log if seq <= 56]


async def test_a_failure_inside_the_client_comes_out_where_it_is_left() -> None:
    async def sleep(delay: float) -> None:
        raise ZeroDivisionError

    async def live(peer: Peer) -> None:
        async with peer.client(backoff=Backoff(sleep=sleep)) as client:
            (await peer.connection()).drop()
            consumer = Consumer(client)
            await consumer.ready()
            await consumer.disconnected()
            await consumer.end()

    async with memory_peer() as peer:
        with pytest.raises(ZeroDivisionError):
            await live(peer)
