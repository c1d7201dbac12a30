"""What somebody has read: kept by the hub, told to the reader's other connections."""

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
    """How many messages are unread by thread, as the list of threads tells it."""
    threads = (await peer.call("list_threads"))["threads"]
    return {thread["id"]: thread["head"] - thread["read"] for thread in threads}


def read(ready: Frame) -> dict[str, int]:
    return {thread["id"]: thread["read"] for thread in ready["threads"]}


async def talk(network: Network, count: int = 5) -> tuple[Peer, Peer]:
    """Two people, of whom bob has so many messages of ann to read."""
    ann, bob = await network.join("ann"), await network.join("bob")
    for n in range(count):
        await ann.say("bob", str(n + 1))
    return ann, bob


async def test_marks_are_told_with_the_threads_and_to_the_readers_other_connections(
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
    for operation, args, left in marks:
        assert await bob.call(operation, thread="direct_ann", **args) == {"done": True}
        assert await unread(bob) == {"dm.ann.bob": left}
        if (operation, args) != ("mark_read", {"upto": 2}):  # what changes nothing is not told
            signal = await other.signal("read")
            assert (signal["sender"], signal["thread_id"]) == ("bob", "dm.ann.bob")
            assert signal["data"] == {"upto": 5 - left}
    assert await unread(ann) == {"dm.ann.bob": 0}, "marks are each reader's own"
    assert read((await network.join("bob", latest=True)).ready) == {"dm.ann.bob": 3}
    for peer in (ann, bob, other):
        await peer.sync()
        assert [s for s in peer.signals if s["type"] == "read"] == []


async def test_who_has_read_everything_has_read_what_it_says_itself(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'town.db'}"
    async with in_memory.start(store=store) as network:
        ann, bob = await talk(network, 2)
        await bob.say("ann", "I have not looked yet")
        assert await unread(bob) == {"dm.ann.bob": 3}, "but what came before is still to be read"
        await bob.call("mark_read", thread="dm.ann.bob", upto=3)
        await bob.say("ann", "now I have")
        assert await unread(bob) == {"dm.ann.bob": 0}
        assert await unread(ann) == {"dm.ann.bob": 2}
    async with in_memory.start(store=store) as network:
        assert await unread(await network.join("bob")) == {"dm.ann.bob": 0}


async def test_marks_made_in_one_breath_keep_their_order_and_are_written_once(
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


async def test_only_what_is_there_can_be_marked(network: Network) -> None:
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
async def test_who_joins_has_read_what_was_said_before(network: Network) -> None:
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
    assert read(again.ready) == old, "coming back is not joining"


@pytest.mark.behaviour("P-33")
async def test_who_joins_a_channel_has_read_what_was_said_before(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await ann.call("create_channel", name="plans")
    root = await ann.call("post_to_channel", channel="plans", text="1")
    await ann.call("reply", message_id=root["id"], text="2")
    await bob.call("join_channel", channel="plans")
    replies = f"channel.plans.t{root['seq']}"
    assert await unread(bob) == {"channel.plans": 0, replies: 0}
    await ann.call("post_to_channel", channel="plans", text="3")
    await bob.call("join_channel", channel="plans")
    assert await unread(bob) == {"channel.plans": 1, replies: 0}, "a member joins nothing"
    await bob.call("leave_channel", channel="plans")
    await ann.call("reply", message_id=root["id"], text="4")
    await bob.call("join_channel", channel="plans")
    assert await unread(bob) == {"channel.plans": 0, replies: 0}


@pytest.mark.behaviour("P-33", "S-3")
async def test_marks_survive_a_restart(in_memory: Networks, tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path}/log.db"
    async with in_memory.start(store=place) as network:
        ann, bob = await talk(network)
        await ann.call("broadcast_text_message", text="hello")
        await network.join("carol")
        await bob.call("mark_read", thread="direct_ann", upto=2)
    async with in_memory.start(config(humans={"dora": {}}), store=place) as network:
        for name, marks in (
            ("bob", {"dm.ann.bob": 2, "broadcast": 0}),
            ("carol", {"broadcast": 1}),
            ("dora", {"broadcast": 1}),  # new in the network's file: that is joining, too
        ):
            assert read((await network.join(name, latest=True)).ready) == marks


@pytest.mark.behaviour("S-5")
async def test_a_mark_that_could_not_be_stored_is_refused_and_not_told(
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
    told = [(await other.signal("read"))["data"]["upto"] for _ in range(2)]
    assert told == [2, 4]


@pytest.mark.behaviour("S-2")
async def test_what_is_not_committed_yet_can_neither_be_read_nor_marked(
    network: Network, moody: MoodyStore
) -> None:
    ann, bob = await talk(network, 1)
    await ann.call("broadcast_text_message", text="before")
    moody.gate.clear()
    said = await ann.post("send_text_message", to="bob", text="2")
    more = await ann.post("broadcast_text_message", text="meanwhile")
    async with soon():
        await moody.waiting.wait()
    assert (await bob.ask("mark_read", thread="direct_ann", upto=2))["code"] == "bad_request"
    carol = asyncio.create_task(network.join("carol"))
    await eventually(lambda: network.hub.kernel.state.knows("carol"))
    moody.gate.set()
    await ann.answer(said)
    await ann.answer(more)
    async with soon():
        assert await unread(await carol) == {"broadcast": 1}, "it arrived after she joined"
    await bob.call("mark_read", thread="direct_ann", upto=2)
    assert await unread(bob) == {"dm.ann.bob": 0, "broadcast": 2}
