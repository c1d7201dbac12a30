"""Calls: arguments, cids, answers, repetitions."""

from __future__ import annotations

import asyncio
import gc

import pytest
from pydantic import JsonValue

from hubbub.client import Backoff
from hubbub.errors import ConnectionLost, OperationError
from hubbub.protocol.frames import Cursor
from tests.unit.client.peer import AT_ONCE, Peer, soon


async def test_a_call_carries_its_arguments_and_returns_what_the_hub_answers(
    any_peer: Peer,
) -> None:
    async with any_peer.client() as client:
        connection = await any_peer.connection()
        where = Cursor(epoch="e", seq=4)
        asked = asyncio.create_task(client.call("list_participants", tags=("a", "b"), where=where))
        call = await connection.call()
        assert call["name"] == "list_participants"
        assert call["args"] == {"tags": ["a", "b"], "where": where.model_dump()}
        connection.send(op="result", ref="999", value=None)  # an answer to nobody
        connection.send(op="error", code="bad_frame", message="about no call")
        connection.result(call, {"participants": ["bob"]})
        assert await soon(asked) == {"participants": ["bob"]}
        posted = client.post("send_text_message")
        connection.refuse(await connection.call(), "cid_conflict", details={"first": {"id": "m1"}})
        with pytest.raises(OperationError) as caught:
            await soon(posted)
        assert (caught.value.code, caught.value.temporary) == ("cid_conflict", False)
        assert caught.value.details == {"first": {"id": "m1"}}


async def test_writes_get_a_cid_of_their_own_unless_it_is_given_and_reads_none(
    peer: Peer,
) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        for name in ("send_text_message", "send_text_message", "list_participants", "unheard_of"):
            client.post(name)
        client.post("create_channel", cid="mine", name="desk")
        first, second, read, unknown, given = [await connection.call() for _ in range(5)]
    assert isinstance(first["cid"], str)
    assert isinstance(unknown["cid"], str), "what is not known to be a read counts as a write"
    assert first["cid"] != second["cid"]
    assert "cid" not in read
    assert (given["cid"], given["args"]) == ("mine", {"name": "desk"})


async def test_a_dropped_post_that_fails_warns_nobody(peer: Peer) -> None:
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: complaints.append(context["message"])
    )
    async with peer.client() as client:
        connection = await peer.connection()
        client.post("send_text_message")
        connection.refuse(await connection.call(), "forbidden")
        asked = client.post("list_participants")
        connection.result(await connection.call())
        await soon(asked)
    gc.collect()
    assert complaints == []


async def test_arguments_that_no_hub_accepts_are_refused_here(peer: Peer) -> None:
    circle: list[object] = []
    circle.append(circle)
    inf = float("inf")
    async with peer.client() as client:
        connection = await peer.connection()
        for argument in (float("nan"), inf, "\ud800", "a\0b", {"a\0": 1}, object(), circle):
            with pytest.raises(OperationError, match="send_text_message") as caught:
                await soon(client.post("send_text_message", text=argument))
            assert caught.value.code == "bad_request"
        client.post("send_text_message", text="\\u0000")  # a backslash, no NUL
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


@pytest.mark.behaviour("C-1")
async def test_a_temporary_refusal_is_tried_again_with_the_same_cid_but_not_for_ever(
    peer: Peer,
) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        asked = asyncio.create_task(client.call("send_text_message", text="x"))
        first = await connection.call()
        connection.refuse(first, "store_unavailable", temporary=True)
        second = await connection.call()
        connection.result(second, "done")
        assert await soon(asked) == "done"
        assert (first["cid"], first["args"]) == (second["cid"], second["args"])
        assert first["ref"] != second["ref"]
        asked = asyncio.create_task(client.call("list_participants"))
        for _ in range(1 + AT_ONCE.retries):
            connection.refuse(await connection.call(), "draining", temporary=True)
        with pytest.raises(OperationError, match="draining"):
            await soon(asked)
        posted = client.post("list_participants")  # a post is not tried again
        connection.refuse(await connection.call(), "draining", temporary=True)
        with pytest.raises(OperationError):
            await soon(posted)
    assert await connection.ended() == []


@pytest.mark.behaviour("C-1")
async def test_calls_in_flight_are_sent_again_after_the_connection_came_back(
    any_peer: Peer,
) -> None:
    async with any_peer.client() as client:
        connection = await any_peer.connection()
        asked = [client.post("send_text_message", n=n) for n in range(4)]
        before = [await connection.call() for _ in asked]
        connection.result(before[1], "second")
        assert await soon(asked[1]) == "second"
        asked[3].cancel()  # it was given up
        connection.drop()
        again = await any_peer.connection()
        after = [await again.call() for _ in range(2)]
        expected = [(call["cid"], call["args"]) for call in (before[0], before[2])]
        assert [(call["cid"], call["args"]) for call in after] == expected
        for call in after:
            again.result(call, call["args"])
        assert [await soon(asked[0]), await soon(asked[2])] == [{"n": 0}, {"n": 2}]


async def test_a_final_close_fails_what_is_in_flight(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        asked = client.post("list_participants")
        await connection.call()
        connection.drop(4504, "revoked")
        with pytest.raises(ConnectionLost) as caught:
            await soon(asked)
        assert caught.value.code == 4504
        with pytest.raises(ConnectionLost):
            await soon(client.call("list_participants"))


def test_delays_grow_from_a_tenth_of_a_second_to_ten_and_are_never_cut_short() -> None:
    longest, shortest = Backoff(random=lambda: 1.0), Backoff(random=lambda: 0.0)
    assert [longest.delay(n) for n in range(4)] == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert longest.delay(10_000) == pytest.approx(10.0)
    assert shortest.delay(10_000) == pytest.approx(5.0)
    assert shortest.after(2.0, 0) == pytest.approx(2.0), "what the hub names is the least"
    assert Backoff(random=lambda: 0.5).after(2.0, 0) == pytest.approx(2.5)


async def test_a_temporary_refusal_waits_at_least_as_long_as_the_hub_says(peer: Peer) -> None:
    waited: list[float] = []

    async def sleep(delay: float) -> None:
        waited.append(delay)

    async with peer.client(backoff=Backoff(random=lambda: 0.0, sleep=sleep)) as client:
        connection = await peer.connection()
        asked = asyncio.create_task(client.call("list_participants"))
        connection.refuse(await connection.call(), "rate_limited", temporary=True, retry_after_s=7)
        connection.refuse(await connection.call(), "store_unavailable", temporary=True)
        connection.result(await connection.call(), "done")
        assert await soon(asked) == "done"
    assert waited == pytest.approx([7.0, 0.1])
