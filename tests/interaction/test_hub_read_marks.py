"""What somebody has read: kept by the hub, told to the reader's other connections."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import OperationError
from hubbub.network.records import ReadMarked
from tests.interaction.peers import Frame, Network, Networks, Peer, config, eventually, soon
from tests.interaction.stores import MoodyStore

DESK = config(channels={"desk": {"members": "all"}})


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


@pytest.mark.behaviour("P-32")
async def test_what_is_marked_as_read_is_told_with_the_threads(network: Network) -> None:
    ann, bob = await talk(network)
    assert await unread(bob) == {"dm.ann.bob": 5}
    assert await bob.call("mark_read", thread="direct_ann", upto=3) == {"done": True}
    assert await unread(bob) == {"dm.ann.bob": 2}
    assert await unread(ann) == {"dm.ann.bob": 0}, "marks are each reader's own"
    assert read((await network.join("bob", latest=True)).ready) == {"dm.ann.bob": 3}


@pytest.mark.behaviour("P-32")
async def test_who_has_read_everything_has_read_what_it_says_itself(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'town.db'}"
    async with Networks(sockets=False).start(store=store) as network:
        ann, bob = await talk(network, 2)
        await bob.say("ann", "I have not looked yet")
        assert await unread(bob) == {"dm.ann.bob": 3}, "but what came before is still to be read"
        await bob.call("mark_read", thread="dm.ann.bob", upto=3)
        await bob.say("ann", "now I have")
        assert await unread(bob) == {"dm.ann.bob": 0}
        assert await unread(ann) == {"dm.ann.bob": 2}
    async with Networks(sockets=False).start(store=store) as network:
        bob = await network.join("bob")
        assert await unread(bob) == {"dm.ann.bob": 0}


@pytest.mark.behaviour("P-32")
async def test_reading_never_moves_back_but_unread_does(network: Network) -> None:
    _ann, bob = await talk(network)
    await bob.call("mark_read", thread="dm.ann.bob", upto=4)
    await bob.call("mark_read", thread="dm.ann.bob", upto=2)
    assert await unread(bob) == {"dm.ann.bob": 1}
    await bob.call("mark_unread", thread="dm.ann.bob", since=2)
    assert await unread(bob) == {"dm.ann.bob": 4}
    await bob.call("mark_read", thread="dm.ann.bob", upto=3)
    assert await unread(bob) == {"dm.ann.bob": 2}
    await bob.call("mark_unread", thread="dm.ann.bob", since=1)
    assert await unread(bob) == {"dm.ann.bob": 5}


@pytest.mark.behaviour("P-32")
async def test_marks_made_in_one_breath_keep_their_order(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        _ann, bob = await talk(network)
        refs = [await bob.post("mark_read", thread="direct_ann", upto=n) for n in (1, 2, 5)]
        refs.append(await bob.post("mark_unread", thread="direct_ann", since=3))
        refs.append(await bob.post("mark_read", thread="direct_ann", upto=1))
        refs.append(await bob.post("mark_read", thread="direct_ann", upto=4))
        for ref in refs:
            assert (await bob.answer(ref))["value"] == {"done": True}
        assert await unread(bob) == {"dm.ann.bob": 1}


@pytest.mark.behaviour("P-32")
async def test_the_readers_other_connections_are_told(network: Network) -> None:
    ann, bob = await talk(network)
    other = await network.join("bob")
    await bob.call("mark_read", thread="direct_ann", upto=3)
    signal = await other.signal("read")
    assert (signal["sender"], signal["thread_id"]) == ("bob", "dm.ann.bob")
    assert signal["data"] == {"upto": 3}
    await bob.call("mark_unread", thread="direct_ann", since=2)
    assert (await other.signal("read"))["data"] == {"upto": 1}
    await bob.call("mark_read", thread="direct_ann", upto=1)  # changes nothing
    for peer in (ann, bob, other):
        await peer.sync()
        assert [s for s in peer.signals if s["type"] == "read"] == []


@pytest.mark.behaviour("P-32")
@pytest.mark.parametrize(
    ("name", "args", "code"),
    [
        ("mark_read", {"thread": "direct_ann", "upto": 6}, "bad_request"),
        ("mark_read", {"thread": "direct_ann", "upto": 0}, "bad_request"),
        ("mark_unread", {"thread": "direct_ann", "since": 6}, "bad_request"),
        ("mark_read", {"thread": "broadcast", "upto": 1}, "bad_request"),
        ("mark_read", {"thread": "dm.ann.carol", "upto": 1}, "unknown_thread"),
        ("mark_read", {"thread": "no thread", "upto": 1}, "unknown_thread"),
    ],
)
async def test_only_what_is_there_can_be_marked(
    network: Network, name: str, args: dict[str, Any], code: str
) -> None:
    ann, bob = await talk(network)
    await network.join("carol")
    await ann.say("carol", "not bob's")
    error = await bob.ask(name, **args)
    assert error["code"] == code
    assert await unread(bob) == {"dm.ann.bob": 5}


async def test_the_error_says_where_the_thread_ends(network: Network) -> None:
    _ann, bob = await talk(network)
    error = await bob.ask("mark_read", thread="direct_ann", upto=9)
    assert error["message"] == "upto: the last message of the thread has the position 5, not 9"


@pytest.mark.behaviour("P-33")
async def test_who_joins_the_network_has_read_what_was_said_before(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
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
        assert read((await network.join("bob", latest=True)).ready) == old, (
            "coming back is not joining"
        )


@pytest.mark.behaviour("P-33")
async def test_who_joins_a_channel_has_read_what_was_said_before(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await ann.call("create_channel", name="desk")
    root = await ann.call("post_to_channel", channel="desk", text="1")
    await ann.call("reply", message_id=root["id"], text="2")
    await bob.call("join_channel", channel="desk")
    replies = f"channel.desk.t{root['seq']}"
    assert await unread(bob) == {"channel.desk": 0, replies: 0}
    await ann.call("post_to_channel", channel="desk", text="3")
    await bob.call("join_channel", channel="desk")
    assert await unread(bob) == {"channel.desk": 1, replies: 0}, "a member joins nothing"
    await bob.call("leave_channel", channel="desk")
    await ann.call("reply", message_id=root["id"], text="4")
    await bob.call("join_channel", channel="desk")
    assert await unread(bob) == {"channel.desk": 0, replies: 0}


@pytest.mark.behaviour("P-32", "P-33", "S-3")
async def test_marks_survive_a_restart(in_memory: Networks, tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path}/log.db"
    async with in_memory.start(store=place) as network:
        ann, bob = await talk(network)
        await ann.call("broadcast_text_message", text="hello")
        await network.join("carol")
        await bob.call("mark_read", thread="direct_ann", upto=2)
    late = config(humans={"dora": {}})
    async with in_memory.start(late, store=place) as network:
        assert read((await network.join("bob", latest=True)).ready) == {
            "dm.ann.bob": 2,
            "broadcast": 0,
        }
        assert read((await network.join("carol", latest=True)).ready) == {"broadcast": 1}
        # Dora is new in the network's file: that is joining, too.
        assert read((await network.join("dora", latest=True)).ready) == {"broadcast": 1}


@pytest.mark.behaviour("P-32", "S-5")
async def test_a_mark_that_could_not_be_stored_is_refused_and_not_told(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        _ann, bob = await talk(network)
        other = await network.join("bob")
        await bob.call("mark_read", thread="direct_ann", upto=2)
        assert (await other.signal("read"))["data"] == {"upto": 2}
        store.failing = 1
        with pytest.raises(OperationError) as refused:
            await bob.call("mark_read", thread="direct_ann", upto=4)
        assert (refused.value.code, refused.value.temporary) == ("store_unavailable", True)
        assert await unread(bob) == {"dm.ann.bob": 3}
        await bob.call("mark_read", thread="direct_ann", upto=4)
        assert await unread(bob) == {"dm.ann.bob": 1}
        assert (await other.signal("read"))["data"] == {"upto": 4}


@pytest.mark.behaviour("P-32", "S-2")
async def test_what_is_not_committed_yet_can_neither_be_read_nor_marked(
    in_memory: Networks,
) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann, bob = await talk(network, 1)
        await ann.call("broadcast_text_message", text="before")
        store.gate.clear()
        said = await ann.post("send_text_message", to="bob", text="2")
        more = await ann.post("broadcast_text_message", text="meanwhile")
        async with soon():
            await store.waiting.wait()
        assert (await bob.ask("mark_read", thread="direct_ann", upto=2))["code"] == "bad_request"
        carol = asyncio.create_task(network.join("carol"))
        await eventually(lambda: network.hub.state.knows("carol"))
        store.gate.set()
        await ann.answer(said)
        await ann.answer(more)
        async with soon():
            assert await unread(await carol) == {"broadcast": 1}, "it arrived after she joined"
        await bob.call("mark_read", thread="direct_ann", upto=2)
        assert await unread(bob) == {"dm.ann.bob": 0, "broadcast": 2}


@pytest.mark.behaviour("P-32")
async def test_a_repeated_mark_writes_nothing(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        _ann, bob = await talk(network)
        for _ in range(5):
            await bob.call("mark_read", thread="direct_ann", upto=5)
        marked = [r for b in store.batches for r in b.records if isinstance(r, ReadMarked)]
        assert len(marked) == 1
