"""Read marks: stored by the hub and signalled to the reader's other sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hubbub.network.stored import StoredMark
from tests.interaction.peers import Frame, Network, Networks, Peer, config, eventually, soon
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("P-32")
NETWORK = config(channels={"desk": {"members": "all"}})


async def unread(peer: Peer) -> dict[str, int]:
    """The number of unread messages of each thread, according to `list_threads`."""
    threads = (await peer.call("list_threads"))["threads"]
    return {thread["id"]: thread["head"] - thread["read"] for thread in threads}


def read(ready: Frame) -> dict[str, int]:
    return {thread["id"]: thread["read"] for thread in ready["threads"]}


async def talk(network: Network, count: int = 5) -> tuple[Peer, Peer]:
    """Ann, and bob with `count` unread messages from her."""
    ann, bob = await network.join("ann"), await network.join("bob")
    for n in range(count):
        await ann.say("bob", str(n + 1))
    return ann, bob


async def test_marks_are_listed_with_threads_and_signalled_to_the_readers_other_sockets(
    network: Network,
) -> None:
    ann, bob = await talk(network)
    other = await network.join("bob")
    assert await unread(bob) == {"dm.ann.bob": 5}
    marks: list[tuple[str, dict[str, Any], int]] = [
        ("mark_read", {"upto": 4}, 1),
        ("mark_read", {"upto": 2}, 1),  # reading never moves back
        ("mark_unread", {"since": 2}, 4),
        ("mark_read", {"upto": 3}, 2),
        ("mark_unread", {"since": 1}, 5),
        ("mark_read", {"upto": 3}, 2),
    ]
    for operation, args, count in marks:
        assert await bob.call(operation, thread="direct_ann", **args) == {"done": True}
        assert await unread(bob) == {"dm.ann.bob": count}
        if (operation, args) != ("mark_read", {"upto": 2}):  # no change, no signal
            signal = await other.signal("read")
            assert (signal["sender"], signal["thread_id"]) == ("bob", "dm.ann.bob")
            assert signal["data"] == {"upto": 5 - count}
    assert await unread(ann) == {"dm.ann.bob": 0}, "marks belong to one reader"
    assert read((await network.join("bob", latest=True)).ready) == {"dm.ann.bob": 3}
    for peer in (ann, bob, other):
        await peer.sync()
        assert [s for s in peer.signals if s["type"] == "read"] == []


async def test_an_up_to_date_readers_own_message_counts_as_read(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'town.db'}"
    async with in_memory.start(store=store) as network:
        ann, bob = await talk(network, 2)
        await bob.say("ann", "I have not looked yet")
        assert await unread(bob) == {"dm.ann.bob": 3}, "the earlier ones are still unread"
        await bob.call("mark_read", thread="dm.ann.bob", upto=3)
        await bob.say("ann", "now I have")
        assert await unread(bob) == {"dm.ann.bob": 0}
        assert await unread(ann) == {"dm.ann.bob": 2}
    async with in_memory.start(store=store) as network:
        assert await unread(await network.join("bob")) == {"dm.ann.bob": 0}


async def test_pipelined_marks_keep_their_order_and_repeated_ones_are_written_once(
    network: Network, moody: MoodyStore
) -> None:
    _ann, bob = await talk(network)
    refs = [await bob.post("mark_read", thread="direct_ann", upto=n) for n in (1, 2, 5)]
    refs.append(await bob.post("mark_unread", thread="direct_ann", since=3))
    refs += [await bob.post("mark_read", thread="direct_ann", upto=n) for n in (1, 4)]
    for ref in refs:
        assert (await bob.answer(ref))["value"] == {"done": True}
    assert await unread(bob) == {"dm.ann.bob": 1}
    before = len(moody.batches)
    for _ in range(3):
        await bob.call("mark_read", thread="direct_ann", upto=5)
    written = [r for batch in moody.batches[before:] for r in batch.records]
    assert [type(record) for record in written] == [StoredMark]


async def test_only_existing_messages_of_visible_threads_can_be_marked(network: Network) -> None:
    ann, bob = await talk(network)
    await network.join("carol")
    await ann.say("carol", "not bob's")
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("mark_read", {"thread": "direct_ann", "upto": 6}, "bad_request"),
        ("mark_read", {"thread": "direct_ann", "upto": 0}, "bad_request"),
        ("mark_unread", {"thread": "direct_ann", "since": 6}, "bad_request"),
        ("mark_read", {"thread": "broadcast", "upto": 1}, "bad_request"),
        ("mark_read", {"thread": "dm.ann.carol", "upto": 1}, "unknown_thread"),
        ("mark_read", {"thread": "no thread", "upto": 1}, "unknown_thread"),
    ]
    for name, args, code in wrong:
        assert (await bob.ask(name, **args))["code"] == code, args
    assert await unread(bob) == {"dm.ann.bob": 5}
    error = await bob.ask("mark_read", thread="direct_ann", upto=9)
    assert "the last message of the thread has the position 5, not 9" in error["message"]


@pytest.mark.behaviour("P-33")
async def test_earlier_messages_count_as_read_for_a_person_who_joins(network: Network) -> None:
    ann = await network.join("ann")
    root = await ann.call("broadcast_text_message", text="welcome")
    await ann.call("reply", message_id=root["id"], text="all of you")
    await ann.call("post_to_channel", channel="desk", text="to work")
    bob, bot = await network.join("bob"), await network.join("bot", "agent")
    old = {"broadcast": 1, f"broadcast.t{root['seq']}": 1, "channel.desk": 1}
    assert read(bob.ready) == old
    assert set(read(bot.ready).values()) == {0}, "only people read"
    await ann.call("post_to_channel", channel="desk", text="more")
    assert await unread(bob) == dict.fromkeys(old, 0) | {"channel.desk": 1}
    again = await network.join("bob", latest=True)
    assert read(again.ready) == old, "a returning person does not join again"


@pytest.mark.behaviour("P-33")
async def test_earlier_channel_messages_count_as_read_for_a_new_member(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await ann.call("create_channel", name="plans")
    root = await ann.call("post_to_channel", channel="plans", text="1")
    await ann.call("reply", message_id=root["id"], text="2")
    await bob.call("join_channel", channel="plans")
    replies = f"channel.plans.t{root['seq']}"
    assert await unread(bob) == {"channel.plans": 0, replies: 0}
    await ann.call("post_to_channel", channel="plans", text="3")
    await bob.call("join_channel", channel="plans")
    assert await unread(bob) == {"channel.plans": 1, replies: 0}, "a member does not join again"
    await bob.call("leave_channel", channel="plans")
    await ann.call("reply", message_id=root["id"], text="4")
    await bob.call("join_channel", channel="plans")
    assert await unread(bob) == {"channel.plans": 0, replies: 0}


@pytest.mark.behaviour("P-33", "S-3")
async def test_marks_survive_a_restart(in_memory: Networks, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/log.db"
    async with in_memory.start(store=store) as network:
        ann, bob = await talk(network)
        await ann.call("broadcast_text_message", text="hello")
        await network.join("carol")
        await bob.call("mark_read", thread="direct_ann", upto=2)
    async with in_memory.start(config(humans={"dora": {}}), store=store) as network:
        for name, marks in (
            ("bob", {"dm.ann.bob": 2, "broadcast": 0}),
            ("carol", {"broadcast": 1}),
            ("dora", {"broadcast": 1}),  # added to the config, which counts as joining
        ):
            assert read((await network.join(name, latest=True)).ready) == marks


@pytest.mark.behaviour("S-5")
async def test_a_mark_that_cannot_be_stored_is_refused_and_not_signalled(
    network: Network, moody: MoodyStore
) -> None:
    _ann, bob = await talk(network)
    other = await network.join("bob")
    await bob.call("mark_read", thread="direct_ann", upto=2)
    moody.failing = 1
    refused = await bob.ask("mark_read", thread="direct_ann", upto=4)
    assert (refused["code"], refused["temporary"]) == ("store_unavailable", True)
    assert await unread(bob) == {"dm.ann.bob": 3}
    await bob.call("mark_read", thread="direct_ann", upto=4)
    assert await unread(bob) == {"dm.ann.bob": 1}
    assert [(await other.signal("read"))["data"]["upto"] for _ in range(2)] == [2, 4]


@pytest.mark.behaviour("S-2")
async def test_an_uncommitted_message_can_be_neither_read_nor_marked(
    network: Network, moody: MoodyStore
) -> None:
    ann, bob = await talk(network, 1)
    await ann.call("broadcast_text_message", text="before")
    moody.gate.clear()
    sent = await ann.post("send_text_message", to="bob", text="2")
    more = await ann.post("broadcast_text_message", text="meanwhile")
    await moody.until_waiting()
    assert (await bob.ask("mark_read", thread="direct_ann", upto=2))["code"] == "bad_request"
    carol = asyncio.create_task(network.join("carol"))
    await eventually(lambda: network.hub.kernel.state.knows("carol"))
    moody.gate.set()
    await ann.answer(sent)
    await ann.answer(more)
    async with soon():
        assert await unread(await carol) == {"broadcast": 1}, "it arrived after she joined"
    await bob.call("mark_read", thread="direct_ann", upto=2)
    assert await unread(bob) == {"dm.ann.bob": 0, "broadcast": 2}
