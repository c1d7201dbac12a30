"""Calls: arguments, cids, answers, repetitions."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest
from pydantic import JsonValue

from hubbub.client import Backoff
from hubbub.errors import ConnectionLost, OperationError
from hubbub.protocol.frames import Cursor
from tests.unit.client.peer import AT_ONCE, Peer, memory_peer, soon


async def test_a_call_returns_what_the_hub_answers(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        asked = asyncio.create_task(client.call("list_participants", limit=3, tags=("a", "b")))
        call = await connection.call()
        assert call["name"] == "list_participants"
        assert call["args"] == {"limit": 3, "tags": ["a", "b"]}
        connection.result(call, {"participants": ["bob"]})
        assert await soon(asked) == {"participants": ["bob"]}


async def test_an_argument_may_be_called_name_or_cid_of_the_operation(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        client.post("create_channel", name="desk")
        assert (await connection.call())["args"] == {"name": "desk"}


async def test_a_model_may_be_an_argument(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        where = Cursor(epoch="e", seq=4)
        client.post("anything", where=where)
        assert (await connection.call())["args"] == {"where": where.model_dump()}


async def test_writes_get_a_cid_of_their_own_and_reads_none(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        for name in ("send_text_message", "send_text_message", "list_participants", "unheard_of"):
            client.post(name)
        first, second, read, unknown = [await connection.call() for _ in range(4)]
    assert isinstance(first["cid"], str)
    assert isinstance(unknown["cid"], str), "what is not known to be a read counts as a write"
    assert first["cid"] != second["cid"]
    assert "cid" not in read


async def test_a_given_cid_is_kept(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        client.post("send_text_message", cid="mine")
        assert (await connection.call())["cid"] == "mine"


async def test_answers_find_their_calls_in_any_order(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        asked = [client.post("list_participants", n=n) for n in range(5)]
        calls = [await connection.call() for _ in asked]
        for call in reversed(calls):
            connection.result(call, call["args"])
        assert [await soon(a) for a in asked] == [{"n": n} for n in range(5)]


async def test_posts_leave_in_the_order_they_were_made(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        for n in range(50):
            client.post("send_text_message", n=n)
        got = [(await connection.call())["args"] for _ in range(50)]
    assert got == [{"n": n} for n in range(50)]


async def test_a_refusal_carries_all_that_the_hub_said(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        asked = client.post("send_text_message")
        connection.refuse(await connection.call(), "cid_conflict", details={"first": {"id": "m1"}})
        with pytest.raises(OperationError) as caught:
            await soon(asked)
    assert caught.value.code == "cid_conflict"
    assert caught.value.details == {"first": {"id": "m1"}}
    assert not caught.value.temporary


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


def _circle() -> list[object]:
    circle: list[object] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    "argument",
    [float("nan"), float("inf"), "\ud800", "a\0b", {"a\0": 1}, object(), _circle()],
    ids=["nan", "infinity", "surrogate", "nul", "nul in a key", "object", "circle"],
)
async def test_arguments_that_no_hub_accepts_are_refused_here(peer: Peer, argument: object) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        with pytest.raises(OperationError, match="send_text_message") as caught:
            await soon(client.post("send_text_message", text=argument))
        assert caught.value.code == "bad_request"
        client.post("list_participants")
        assert (await connection.call())["name"] == "list_participants"


async def test_a_backslash_before_u0000_is_no_nul(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        client.post("send_text_message", text="\\u0000")
        assert (await connection.call())["args"] == {"text": "\\u0000"}


async def test_a_call_too_large_for_the_hub_is_refused_here(peer: Peer) -> None:
    async with peer.client() as client:
        with pytest.raises(OperationError, match="4096") as caught:
            await soon(client.call("send_text_message", text="x" * 5000))
    assert caught.value.code == "too_large"


async def test_a_call_nested_deeper_than_the_hub_reads_is_refused_here(peer: Peer) -> None:
    deep: JsonValue = "bottom"
    for _ in range(29):
        deep = [deep]
    async with peer.client() as client:
        connection = await peer.connection()
        client.post("send_message", content=deep)
        await connection.call()
        with pytest.raises(OperationError, match="32") as caught:
            await soon(client.call("send_message", content=[deep, {"a": [deep]}]))
    assert caught.value.code == "bad_request"


@pytest.mark.behaviour("C-1")
async def test_a_temporary_refusal_is_tried_again_with_the_same_cid(peer: Peer) -> None:
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


async def test_temporary_refusals_are_not_tried_for_ever(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        asked = asyncio.create_task(client.call("list_participants"))
        for _ in range(1 + AT_ONCE.retries):
            connection.refuse(await connection.call(), "draining", temporary=True)
        with pytest.raises(OperationError) as caught:
            await soon(asked)
    assert caught.value.code == "draining"


async def test_a_post_is_not_tried_again(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        asked = client.post("list_participants")
        connection.refuse(await connection.call(), "draining", temporary=True)
        with pytest.raises(OperationError):
            await soon(asked)
    assert await connection.ended() == []


@pytest.mark.behaviour("C-1")
async def test_calls_in_flight_are_sent_again_after_the_connection_came_back(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        asked = [client.post("send_text_message", n=n) for n in range(3)]
        before = [await connection.call() for _ in asked]
        connection.result(before[1], "second")
        assert await soon(asked[1]) == "second"
        connection.drop()
        again = await peer.connection()
        after = [await again.call() for _ in range(2)]
        assert [(c["cid"], c["args"]) for c in after] == [
            (c["cid"], c["args"]) for c in (before[0], before[2])
        ]
        for call in after:
            again.result(call, call["args"])
        assert [await soon(asked[0]), await soon(asked[2])] == [{"n": 0}, {"n": 2}]


async def test_what_is_posted_while_disconnected_leaves_after_the_resume() -> None:
    async with memory_peer() as peer, peer.client() as client:
        connection = await peer.connection()
        peer.away = True
        connection.drop()
        await soon(connection.gone.wait())
        asked = [client.post("send_text_message", n=n) for n in range(3)]
        peer.away = False
        again = await peer.connection()
        calls = [await again.call() for _ in asked]
    assert [c["args"] for c in calls] == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_a_call_that_was_given_up_is_not_sent_again(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        given_up = client.post("send_text_message", n=1)
        await connection.call()
        given_up.cancel()
        kept = client.post("send_text_message", n=2)
        await connection.call()
        connection.drop()
        again = await peer.connection()
        call = await again.call()
        assert call["args"] == {"n": 2}
        again.result(call)
        await soon(kept)


async def test_an_answer_to_nobody_is_passed_over(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        connection.send(op="result", ref="999", value=None)
        connection.send(op="error", code="bad_frame", message="about no call")
        asked = client.post("list_participants")
        connection.result(await connection.call(), "still here")
        assert await soon(asked) == "still here"


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


@pytest.mark.parametrize(("chance", "expected"), [(lambda: 0.0, 2.0), (lambda: 0.5, 2.5)])
def test_a_delay_that_the_hub_names_is_never_cut_short(
    chance: Callable[[], float], expected: float
) -> None:
    assert Backoff(random=chance).after(2.0, 0) == pytest.approx(expected)


def test_delays_grow_from_a_tenth_of_a_second_to_ten() -> None:
    longest = Backoff(random=lambda: 1.0)
    shortest = Backoff(random=lambda: 0.0)
    assert [longest.delay(n) for n in range(4)] == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert longest.delay(10_000) == pytest.approx(10.0)
    assert shortest.delay(10_000) == pytest.approx(5.0)


async def test_a_temporary_refusal_waits_at_least_as_long_as_the_hub_says(
    peer: Peer,
) -> None:
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
