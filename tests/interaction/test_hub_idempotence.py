"""The same `cid` writes once, whatever comes between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interaction.peers import Network, Networks, soon
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("P-22")

SEND = {"to": "bob", "text": "hi"}


async def test_the_same_write_again_gives_the_first_result_and_another_is_a_conflict(
    network: Network,
) -> None:
    ann = await network.join("ann")
    refused = await ann.ask("send_text_message", cid="c1", **SEND)
    assert refused["code"] == "unknown_participant", "which does not use up the cid"
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
    await bob.say("ann", "a cid is its sender's", cid="c1")
    assert await ann.texts() == ["a cid is its sender's"]
    for cid in ("", "ä", "a b", "x" * 65):
        error = await ann.ask("send_text_message", cid=cid, **SEND)
        assert error["code"] == "bad_request"
        assert "cid" in error["message"]


async def test_repetitions_and_conflicts_wait_for_the_write_that_is_on_its_way(
    in_memory: Networks,
) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        store.gate.clear()
        refs = [await ann.post("send_text_message", cid="c1", **SEND) for _ in range(3)]
        other = await ann.post("send_text_message", cid="c1", to="bob", text="else")
        async with soon():
            await store.waiting.wait()
        refs.append(await ann.post("send_text_message", cid="c1", **SEND))
        store.gate.set()
        answers = [await ann.answer(ref) for ref in refs]
        assert len({answer["value"]["seq"] for answer in answers}) == 1
        assert [answer.get("duplicate", False) for answer in answers] == [False, True, True, True]
        refused = await ann.answer(other)
        assert refused["code"] == "cid_conflict"
        assert refused["details"]["first"]["seq"] == answers[0]["value"]["seq"]
        assert await bob.texts() == ["hi"]


async def test_when_the_first_write_fails_a_repetition_may_try_again(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        store.failing = 1
        refs = [await ann.post("send_text_message", cid="c1", **SEND) for _ in range(2)]
        refs.append(await ann.post("send_text_message", cid="c1", to="bob", text="else"))
        for ref in refs:
            answer = await ann.answer(ref)
            assert (answer["code"], answer["temporary"]) == ("store_unavailable", True)
        assert (await ann.ask("send_text_message", cid="c1", **SEND))["op"] == "result"
        assert await bob.texts() == ["hi"]


async def test_a_repetition_over_another_socket_is_one_message(in_memory: Networks) -> None:
    """A client that lost its connection sends again what was not answered."""
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        store.gate.clear()
        await ann.post("send_text_message", cid="c1", **SEND)
        async with soon():
            await store.waiting.wait()
        await ann.close()
        store.gate.set()
        back = await network.join("ann")
        assert (await back.ask("send_text_message", cid="c1", **SEND))["duplicate"] is True
        assert await bob.texts() == ["hi"]


async def test_a_cid_is_remembered_beyond_a_restart(in_memory: Networks, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/hub.db"
    async with in_memory.start(store=store) as network:
        ann = await network.join("ann")
        await network.join("bob")
        first = await ann.call("send_text_message", cid="c1", **SEND)
        made = await ann.call("create_channel", cid="c2", name="desk")
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        again = await ann.ask("send_text_message", cid="c1", **SEND)
        assert (again["duplicate"], again["value"]["seq"]) == (True, first["seq"])
        channel = await ann.ask("create_channel", cid="c2", name="desk")
        assert (channel["duplicate"], channel["value"]) == (True, made)
        assert (await ann.ask("create_channel", cid="c2", name="other"))["code"] == "cid_conflict"
        assert await bob.take_texts(1) == ["hi"]


async def test_a_channel_is_created_once_for_one_cid(network: Network) -> None:
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
    said = await ann.call("post_to_channel", cid="c3", **post)
    await ann.call("leave_channel", channel="desk")
    repeated = await ann.ask("post_to_channel", cid="c3", **post)
    assert (repeated["duplicate"], repeated["value"]["seq"]) == (True, said["seq"])
    assert (await ann.ask("post_to_channel", cid="c4", **post))["code"] == "forbidden"


@pytest.mark.behaviour("B-8")
async def test_one_cid_for_several_writes_in_one_breath_hurts_nobody(network: Network) -> None:
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


async def test_a_repetition_gets_its_first_result_where_its_cause_can_no_longer_be_named(
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


async def test_joining_and_leaving_with_a_used_cid_give_what_it_gave_and_change_nothing(
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
