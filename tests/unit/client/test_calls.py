"""Calls of a client: arguments, cids, results and retries."""

from __future__ import annotations

import asyncio
import gc

import pytest
from pydantic import JsonValue

from hubbub.client import Backoff
from hubbub.errors import ConnectionLost, OperationError
from hubbub.protocol.frames import Cursor
from tests.unit.client.peer import NO_DELAY, Peer, RecordedDelays, soon


async def test_a_call_sends_its_arguments_and_returns_the_hubs_result(any_peer: Peer) -> None:
    async with any_peer.client() as client:
        connection = await any_peer.connection()
        where = Cursor(epoch="e", seq=4)
        reply = asyncio.create_task(client.call("list_participants", tags=("a", "b"), where=where))
        call = await connection.call()
        assert call["name"] == "list_participants"
        assert call["args"] == {"tags": ["a", "b"], "where": where.model_dump()}
        connection.send(op="result", ref="999", value=None)  # of an unknown call
        connection.send(op="error", code="bad_frame", message="about no call")
        connection.result(call, {"participants": ["bob"]})
        assert await soon(reply) == {"participants": ["bob"]}
        posted = client.post("send_text_message")
        connection.refuse(await connection.call(), "cid_conflict", details={"first": {"id": "m1"}})
        with pytest.raises(OperationError) as caught:
            await soon(posted)
        assert (caught.value.code, caught.value.temporary) == ("cid_conflict", False)
        assert caught.value.details == {"first": {"id": "m1"}}


async def test_writes_get_a_unique_cid_unless_one_is_given_and_reads_get_none(
    peer: Peer,
) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        for name in ("send_text_message", "send_text_message", "list_participants", "unheard_of"):
            client.post(name)
        client.post("create_channel", cid="mine", name="desk")
        first, second, read, unknown, given = [await connection.call() for _ in range(5)]
    assert isinstance(first["cid"], str)
    assert isinstance(unknown["cid"], str), "an unknown operation counts as a write"
    assert first["cid"] != second["cid"]
    assert "cid" not in read
    assert (given["cid"], given["args"]) == ("mine", {"name": "desk"})


async def test_more_calls_than_fit_one_write_arrive_in_order(any_peer: Peer) -> None:
    async with any_peer.client() as client:
        connection = await any_peer.connection()
        texts = [f"{n} {'x' * 2000}" for n in range(100)]
        posted = [client.post("send_text_message", text=text) for text in texts]
        posted[50].cancel()
        await client.signal("typing", "dm.ann.bob")
        calls = [await connection.call() for _ in range(99)]
        assert [call["args"] for call in calls] == [
            {"text": text} for n, text in enumerate(texts) if n != 50
        ]
        await connection.frame("signal")


async def test_a_failed_post_that_is_not_awaited_causes_no_warning(peer: Peer) -> None:
    warnings: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: warnings.append(context["message"])
    )
    async with peer.client() as client:
        connection = await peer.connection()
        client.post("send_text_message")
        connection.refuse(await connection.call(), "forbidden")
        reply = client.post("list_participants")
        connection.result(await connection.call())
        await soon(reply)
    gc.collect()
    assert warnings == []


async def test_the_client_refuses_arguments_that_no_hub_accepts(peer: Peer) -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    inf = float("inf")
    async with peer.client() as client:
        connection = await peer.connection()
        for argument in (float("nan"), inf, "\ud800", "a\0b", {"a\0": 1}, object(), cycle):
            with pytest.raises(OperationError, match="send_text_message") as caught:
                await soon(client.post("send_text_message", text=argument))
            assert caught.value.code == "bad_request"
        client.post("send_text_message", text="\\u0000")  # a backslash, not NUL
        assert (await connection.call())["args"] == {"text": "\\u0000"}
        with pytest.raises(OperationError, match="4096") as caught:
            await soon(client.call("send_text_message", text="x" * 5000))
        assert caught.value.code == "too_large"
        deep: JsonValue = "bottom"
        for _ in range(29):
            deep = [deep]
        client.post("send_message", content=deep)
        await connection.call()
        with pytest.raises(OperationError, match="32") as caught:
            await soon(client.call("send_message", content=[deep, {"a": [deep]}]))
        assert caught.value.code == "bad_request"
        for data, code in ((object(), "bad_request"), ("x" * 5000, "too_large")):
            with pytest.raises(OperationError, match="signal typing") as caught:
                await client.signal("typing", "dm.ann.bob", data)  # type: ignore[arg-type]
            assert caught.value.code == code


@pytest.mark.behaviour("C-1")
async def test_a_temporarily_refused_call_is_retried_with_the_same_cid_a_few_times(
    peer: Peer,
) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        reply = asyncio.create_task(client.call("send_text_message", text="x"))
        first = await connection.call()
        connection.refuse(first, "store_unavailable", temporary=True)
        second = await connection.call()
        connection.result(second, "done")
        assert await soon(reply) == "done"
        assert (first["cid"], first["args"]) == (second["cid"], second["args"])
        assert first["ref"] != second["ref"]
        reply = asyncio.create_task(client.call("list_participants"))
        for _ in range(1 + NO_DELAY.retries):
            connection.refuse(await connection.call(), "draining", temporary=True)
        with pytest.raises(OperationError, match="draining"):
            await soon(reply)
        posted = client.post("list_participants")  # a post is not retried
        connection.refuse(await connection.call(), "draining", temporary=True)
        with pytest.raises(OperationError):
            await soon(posted)
    assert await connection.ended() == []


async def test_calls_over_the_rate_limit_are_retried_one_at_a_time(peer: Peer) -> None:
    """All at once, they exceeded it again until the hub closed the connection with 4005."""
    async with peer.client() as client:
        connection = await peer.connection()
        replies = [asyncio.create_task(client.call("list_participants")) for _ in range(20)]
        for _ in replies:
            connection.refuse(await connection.call(), "rate_limited", temporary=True)
        for _ in replies:
            retried = await connection.call()
            await soon(client.signal("typing"))
            await connection.frame("signal")  # and no other call before it
            connection.result(retried, "done")
        assert await soon(asyncio.gather(*replies)) == ["done"] * 20


@pytest.mark.behaviour("C-1")
async def test_calls_in_flight_are_sent_again_after_a_reconnect(any_peer: Peer) -> None:
    async with any_peer.client() as client:
        connection = await any_peer.connection()
        replies = [client.post("send_text_message", n=n) for n in range(4)]
        before = [await connection.call() for _ in replies]
        connection.result(before[1], "second")
        assert await soon(replies[1]) == "second"
        replies[3].cancel()
        connection.drop()
        again = await any_peer.connection()
        after = [await again.call() for _ in range(2)]
        expected = [(call["cid"], call["args"]) for call in (before[0], before[2])]
        assert [(call["cid"], call["args"]) for call in after] == expected
        for call in after:
            again.result(call, call["args"])
        assert [await soon(replies[0]), await soon(replies[2])] == [{"n": 0}, {"n": 2}]


async def test_a_final_close_fails_the_calls_in_flight_and_later_ones(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        reply = client.post("list_participants")
        await connection.call()
        connection.drop(4504, "revoked")
        with pytest.raises(ConnectionLost) as caught:
            await soon(reply)
        assert caught.value.code == 4504
        with pytest.raises(ConnectionLost):
            await soon(client.call("list_participants"))


def test_retry_delays_double_from_0_1_s_to_10_s_and_respect_the_hubs_minimum() -> None:
    longest, shortest = Backoff(random=lambda: 1.0), Backoff(random=lambda: 0.0)
    assert [longest.delay(n) for n in range(4)] == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert longest.delay(10_000) == pytest.approx(10.0)
    assert shortest.delay(10_000) == pytest.approx(5.0)
    assert shortest.after(2.0, 0) == pytest.approx(2.0), "never shorter than the hub's delay"
    assert Backoff(random=lambda: 0.5).after(2.0, 0) == pytest.approx(2.5)


async def test_a_retry_waits_for_the_delay_that_the_hub_sends(peer: Peer) -> None:
    delays = RecordedDelays()
    async with peer.client(backoff=Backoff(random=lambda: 0.0, sleep=delays)) as client:
        connection = await peer.connection()
        reply = asyncio.create_task(client.call("list_participants"))
        connection.refuse(await connection.call(), "rate_limited", temporary=True, retry_after_s=7)
        connection.refuse(await connection.call(), "store_unavailable", temporary=True)
        connection.result(await connection.call(), "done")
        assert await soon(reply) == "done"
    assert delays == pytest.approx([7.0, 0.1])
