"""A repeated `cid` writes once, whatever happens in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interaction.peers import Network, Networks
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("P-22")

SEND = {"to": "bob", "text": "hi"}


async def test_a_repeated_write_returns_the_first_result_and_a_different_one_conflicts(
    network: Network,
) -> None:
    ann = await network.join("ann")
    refused = await ann.ask("send_text_message", cid="c1", **SEND)
    assert refused["code"] == "unknown_participant", "this does not use up the cid"
    bob = await network.join("bob")
    first = await ann.ask("send_text_message", cid="c1", **SEND)
    again = await ann.ask("send_text_message", cid="c1", **SEND)
    assert ("duplicate" not in first, again["duplicate"]) == (True, True)
    for field in ("id", "seq", "tseq", "thread_id"):
        assert again["value"][field] == first["value"][field]
    other = await ann.ask("send_text_message", cid="c1", to="bob", text="something else")
    assert (other["code"], other["temporary"]) == ("cid_conflict", False)
    assert other["details"]["first"]["id"] == first["value"]["id"]
    named = await ann.ask("broadcast_text_message", cid="c1", text="hi")
    assert named["code"] == "cid_conflict"
    assert await bob.texts() == ["hi"]
    await bob.say("ann", "bob's own c1", cid="c1")
    assert await ann.texts() == ["bob's own c1"]
    for cid in ("", "ä", "a b", "x" * 65):
        error = await ann.ask("send_text_message", cid=cid, **SEND)
        assert error["code"] == "bad_request"
        assert "cid" in error["message"]


async def test_repetitions_and_conflicts_wait_for_the_pending_first_write(
    network: Network,
    moody: MoodyStore,
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    moody.gate.clear()
    refs = [await ann.post("send_text_message", cid="c1", **SEND) for _ in range(3)]
    other = await ann.post("send_text_message", cid="c1", to="bob", text="else")
    await moody.until_waiting()
    refs.append(await ann.post("send_text_message", cid="c1", **SEND))
    moody.gate.set()
    answers = [await ann.answer(ref) for ref in refs]
    assert len({answer["value"]["seq"] for answer in answers}) == 1
    assert [answer.get("duplicate", False) for answer in answers] == [False, True, True, True]
    refused = await ann.answer(other)
    assert refused["code"] == "cid_conflict"
    assert refused["details"]["first"]["seq"] == answers[0]["value"]["seq"]
    assert await bob.texts() == ["hi"]


async def test_repetitions_in_a_batch_with_new_writes_are_answered_and_the_rest_is_written(
    network: Network, moody: MoodyStore
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    first = await ann.call("send_text_message", cid="c1", **SEND)
    made = await ann.call("create_channel", cid="c2", name="old")
    moody.gate.clear()
    moody.waiting.clear()
    await ann.post("send_text_message", to="bob", text="being written")
    await moody.until_waiting()
    refs = [
        await ann.post("send_text_message", to="bob", text="before"),
        await ann.post("send_text_message", cid="c1", **SEND),
        await ann.post("send_text_message", to="bob", text="after"),
        await ann.post("create_channel", cid="c2", name="old"),
        await ann.post("create_channel", name="new"),
    ]
    await ann.sync()
    moody.gate.set()
    before, again, after, old, new = [await ann.answer(ref) for ref in refs]
    assert [each.get("duplicate") for each in (before, again, after, old, new)] == [
        None, True, None, True, None,
    ]  # fmt: skip
    assert (again["value"]["seq"], old["value"]) == (first["seq"], made)
    assert [each["value"]["tseq"] for each in (before, after)] == [3, 4]
    assert await bob.texts() == ["hi", "being written", "before", "after"]
    assert new["value"]["name"] == "new"


async def test_a_write_that_failed_can_be_repeated(network: Network, moody: MoodyStore) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    moody.failing = 1
    refs = [await ann.post("send_text_message", cid="c1", **SEND) for _ in range(2)]
    refs.append(await ann.post("send_text_message", cid="c1", to="bob", text="else"))
    for ref in refs:
        answer = await ann.answer(ref)
        assert (answer["code"], answer["temporary"]) == ("store_unavailable", True)
    assert (await ann.ask("send_text_message", cid="c1", **SEND))["op"] == "result"
    assert await bob.texts() == ["hi"]


async def test_a_repetition_on_a_new_socket_is_one_message(
    network: Network, moody: MoodyStore
) -> None:
    """A client that lost its connection repeats its unanswered calls."""
    ann, bob = await network.join("ann"), await network.join("bob")
    moody.gate.clear()
    await ann.post("send_text_message", cid="c1", **SEND)
    await moody.until_waiting()
    await ann.close()
    moody.gate.set()
    back = await network.join("ann")
    assert (await back.ask("send_text_message", cid="c1", **SEND))["duplicate"] is True
    assert await bob.texts() == ["hi"]


async def test_a_cid_is_remembered_after_a_restart(in_memory: Networks, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/hub.db"
    async with in_memory.start(store=store) as network:
        ann = await network.join("ann")
        await network.join("bob")
        first = await ann.call("send_text_message", cid="c1", **SEND)
        created = await ann.call("create_channel", cid="c2", name="desk")
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        again = await ann.ask("send_text_message", cid="c1", **SEND)
        assert (again["duplicate"], again["value"]["seq"]) == (True, first["seq"])
        channel = await ann.ask("create_channel", cid="c2", name="desk")
        assert (channel["duplicate"], channel["value"]) == (True, created)
        assert (await ann.ask("create_channel", cid="c2", name="other"))["code"] == "cid_conflict"
        assert await bob.take_texts(1) == ["hi"]


async def test_a_cid_creates_one_channel_and_one_post(network: Network) -> None:
    ann = await network.join("ann")
    refs = [await ann.post("create_channel", cid="c1", name="desk") for _ in range(2)]
    first, again = [await ann.answer(ref) for ref in refs]
    later = await ann.ask("create_channel", cid="c1", name="desk")
    assert first["value"] == again["value"] == later["value"]
    assert (again["duplicate"], later["duplicate"]) == (True, True)
    error = await ann.ask("create_channel", cid="c2", name="desk")
    assert error["code"] == "channel_exists"
    conflict = await ann.ask("create_channel", cid="c1", name="other")
    assert conflict["code"] == "cid_conflict"
    assert conflict["details"]["first"]["name"] == "desk"
    assert [c["name"] for c in (await ann.call("list_channels"))["channels"]] == ["desk"]
    post = {"channel": "desk", "text": "x"}
    sent = await ann.call("post_to_channel", cid="c3", **post)
    await ann.call("leave_channel", channel="desk")
    repeated = await ann.ask("post_to_channel", cid="c3", **post)
    assert (repeated["duplicate"], repeated["value"]["seq"]) == (True, sent["seq"])
    assert (await ann.ask("post_to_channel", cid="c4", **post))["code"] == "forbidden"


@pytest.mark.behaviour("B-8")
async def test_of_several_pipelined_writes_with_one_cid_only_the_first_succeeds(
    network: Network,
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    refs = [
        await ann.post("create_channel", cid="c1", name="one"),
        await ann.post("create_channel", cid="c1", name="two"),
        await ann.post("send_text_message", cid="c1", **SEND),
    ]
    first, *others = [await ann.answer(ref) for ref in refs]
    assert first["op"] == "result"
    for other in others:
        assert other["code"] == "cid_conflict"
        assert other["details"]["first"]["name"] == "one"
    refs = [
        await ann.post("send_text_message", cid="c3", **SEND),
        await ann.post("create_channel", cid="c3", name="three"),
    ]
    sent, refused = [await ann.answer(ref) for ref in refs]
    assert sent["op"] == "result"
    assert refused["details"]["first"]["seq"] == sent["value"]["seq"]
    assert [c["name"] for c in (await ann.call("list_channels"))["channels"]] == ["one"]
    assert await bob.texts() == ["hi"]


async def test_a_repetition_succeeds_although_its_cause_is_no_longer_readable(
    in_memory: Networks, tmp_path: Path
) -> None:
    store, post = f"sqlite:{tmp_path}/hub.db", {"text": "so", "cause": "m1"}
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.call("create_channel", name="desk", members=["bob"])
        await ann.call("post_to_channel", channel="desk", text="why")
        first = await bob.call("broadcast_text_message", cid="c1", **post)
        await bob.call("leave_channel", channel="desk")
    async with in_memory.start(store=store) as network:
        bob = await network.join("bob")
        again = await bob.ask("broadcast_text_message", cid="c1", **post)
        assert (again.get("duplicate"), again["value"]["seq"]) == (True, first["seq"])


async def test_repeated_joins_and_leaves_return_the_first_result_and_change_nothing(
    network: Network,
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await bob.call("create_channel", name="desk")
    joined = {"cid": "c1", "channel": "desk"}
    refs = [await ann.post("join_channel", **joined) for _ in range(2)]
    first, again = [await ann.answer(ref) for ref in refs]
    assert ("duplicate" not in first, again["duplicate"]) == (True, True)
    await ann.call("leave_channel", channel="desk", cid="c2")
    repeated = await ann.ask("join_channel", **joined)
    assert (repeated["duplicate"], repeated["value"]) == (True, first["value"])
    [desk] = (await ann.call("list_channels"))["channels"]
    assert desk["members"] == ["bob"], "a repetition does not join again"
    await ann.call("join_channel", channel="desk", cid="c3")
    assert (await ann.ask("leave_channel", channel="desk", cid="c2"))["duplicate"] is True
    assert (await ann.ask("leave_channel", channel="desk", cid="c1"))["code"] == "cid_conflict"
    [desk] = (await ann.call("list_channels"))["channels"]
    assert desk["members"] == ["ann", "bob"]
