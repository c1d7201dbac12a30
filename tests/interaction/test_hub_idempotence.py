"""The same `cid` writes once, whatever comes between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interaction.peers import Network, Networks, soon
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("P-22")

SEND = {"to": "bob", "text": "hi"}


async def test_the_same_write_again_gives_the_first_result(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    first = await ann.ask("send_text_message", cid="c1", **SEND)
    again = await ann.ask("send_text_message", cid="c1", **SEND)
    assert "duplicate" not in first
    assert again["duplicate"] is True
    for field in ("id", "seq", "tseq", "thread_id"):
        assert again["value"][field] == first["value"][field]
    assert await bob.texts() == ["hi"]


async def test_the_same_cid_with_another_body_is_a_conflict_that_tells_the_first(
    network: Network,
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    first = await ann.call("send_text_message", cid="c1", **SEND)
    other = await ann.ask("send_text_message", cid="c1", to="bob", text="something else")
    assert (other["code"], other["temporary"]) == ("cid_conflict", False)
    assert other["details"]["first"]["id"] == first["id"]
    named = await ann.ask("broadcast_text_message", cid="c1", text="hi")
    assert named["code"] == "cid_conflict"
    assert await bob.texts() == ["hi"]


async def test_cids_belong_to_their_sender(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await ann.say("bob", "from ann", cid="c1")
    await bob.say("ann", "from bob", cid="c1")
    assert await ann.texts() == ["from bob"]


async def test_a_repetition_waits_for_the_write_that_is_on_its_way(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        store.gate.clear()
        refs = [await ann.post("send_text_message", cid="c1", **SEND) for _ in range(3)]
        async with soon():
            await store.waiting.wait()
        refs.append(await ann.post("send_text_message", cid="c1", **SEND))
        store.gate.set()
        answers = [await ann.answer(ref) for ref in refs]
        assert len({answer["value"]["seq"] for answer in answers}) == 1
        assert [answer.get("duplicate", False) for answer in answers] == [False, True, True, True]
        assert await bob.texts() == ["hi"]


async def test_a_conflict_with_a_write_on_its_way_tells_the_first_when_it_is_there(
    in_memory: Networks,
) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        store.gate.clear()
        first = await ann.post("send_text_message", cid="c1", **SEND)
        other = await ann.post("send_text_message", cid="c1", to="bob", text="else")
        store.gate.set()
        sent, refused = await ann.answer(first), await ann.answer(other)
        assert refused["code"] == "cid_conflict"
        assert refused["details"]["first"]["seq"] == sent["value"]["seq"]
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
    first = await ann.ask("create_channel", cid="c1", name="desk")
    again = await ann.ask("create_channel", cid="c1", name="desk")
    assert (again["duplicate"], again["value"]) == (True, first["value"])
    error = await ann.ask("create_channel", cid="c2", name="desk")
    assert error["code"] == "channel_exists"
    conflict = await ann.ask("create_channel", cid="c1", name="other")
    assert conflict["code"] == "cid_conflict"
    assert conflict["details"]["first"]["name"] == "desk"
    assert [c["name"] for c in (await ann.call("list_channels"))["channels"]] == ["desk"]


async def test_a_channel_is_created_once_though_asked_for_twice_in_one_breath(
    network: Network,
) -> None:
    ann = await network.join("ann")
    refs = [await ann.post("create_channel", cid="c1", name="desk") for _ in range(2)]
    first, again = [await ann.answer(ref) for ref in refs]
    assert first["value"] == again["value"]
    assert again["duplicate"] is True


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
    assert await ann.ask("create_channel", cid="c2", name="two")
    refs = [
        await ann.post("send_text_message", cid="c3", **SEND),
        await ann.post("create_channel", cid="c3", name="three"),
    ]
    sent, refused = [await ann.answer(ref) for ref in refs]
    assert sent["op"] == "result"
    assert refused["details"]["first"]["seq"] == sent["value"]["seq"]
    names = [c["name"] for c in (await ann.call("list_channels"))["channels"]]
    assert names == ["one", "two"]
    assert await bob.texts() == ["hi"]


async def test_a_refused_write_does_not_use_up_its_cid(network: Network) -> None:
    ann = await network.join("ann")
    error = await ann.ask("send_text_message", cid="c1", to="bob", text="hi")
    assert error["code"] == "unknown_participant"
    bob = await network.join("bob")
    assert (await ann.ask("send_text_message", cid="c1", **SEND))["op"] == "result"
    assert await bob.texts() == ["hi"]


async def test_a_repetition_is_answered_even_if_it_would_be_refused_now(network: Network) -> None:
    ann = await network.join("ann")
    await ann.call("create_channel", name="desk")
    post = {"channel": "desk", "text": "x"}
    first = await ann.call("post_to_channel", cid="c1", **post)
    await ann.call("leave_channel", channel="desk")
    again = await ann.ask("post_to_channel", cid="c1", **post)
    assert (again["duplicate"], again["value"]["seq"]) == (True, first["seq"])
    assert (await ann.ask("post_to_channel", cid="c2", **post))["code"] == "forbidden"


@pytest.mark.parametrize("cid", ["", "ä", "a b", "x" * 65])
async def test_a_cid_has_the_form_of_an_id(network: Network, cid: str) -> None:
    ann = await network.join("ann")
    error = await ann.ask("send_text_message", cid=cid, **SEND)
    assert error["code"] == "bad_request"
    assert "cid" in error["message"]
