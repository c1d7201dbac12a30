"""Reply threads, reading threads, mentions, signals and channels."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub.protocol.messages import Message
from tests.interaction.peers import Network, Networks, config

NETWORK = config(channels={"general": {}}, network={"limits": {"channels": 3}})


@pytest.mark.behaviour("P-10")
async def test_a_reply_opens_a_thread_under_its_message_to_five_levels(network: Network) -> None:
    ann, bob, calc = await network.join("ann"), await network.join("bob"), await network.join("c")
    root = await ann.say("bob", "root")
    reply = await bob.call("reply", message_id=root["id"], text="under it")
    thread = f"dm.ann.bob.t{root['seq']}"
    assert (reply["thread_id"], reply["tseq"]) == (thread, 1)
    message = (await ann.event())["message"]
    assert (message["reply_to"], message["recipients"]) == (root["id"], ["ann"])
    again = await ann.call("reply", message_id=root["id"], text="me too")
    by_name = await ann.say(f"direct_bob.t{root['seq']}", "by its name")
    positions = [(each["thread_id"], each["tseq"]) for each in (again, by_name)]
    assert positions == [(thread, 2), (thread, 3)]
    for wrong, code in (
        (root["id"], "unknown_message"),
        ("m99", "unknown_message"),
        ("root", "bad_request"),
    ):
        assert (await calc.ask("reply", message_id=wrong, text="x"))["code"] == code
    assert await calc.sync() == []
    for level in range(2, 6):
        reply = await ann.call("reply", message_id=reply["id"], text=str(level))
        assert reply["thread_id"].count(".t") == level
    error = await ann.ask("reply", message_id=reply["id"], text="6")
    assert (error["code"], "5 levels" in error["message"]) == ("thread_depth", True)
    beside = await ann.say(reply["thread_id"].replace("dm.ann.bob", "direct_bob"), "beside it")
    assert beside["thread_id"] == reply["thread_id"]


async def test_the_depth_of_threads_can_be_configured(in_memory: Networks) -> None:
    async with in_memory.start(config(network={"limits": {"thread_depth": 0}})) as network:
        ann = await network.join("ann")
        root = await ann.call("broadcast_text_message", text="0")
        assert (await ann.ask("reply", message_id=root["id"], text="1"))["code"] == "thread_depth"


@pytest.mark.behaviour("P-18")
async def test_pipelined_replies_and_messages_keep_their_order(network: Network) -> None:
    """A reply first reads its message from the store; later calls wait for it."""
    ann, bob = await network.join("ann"), await network.join("bob")
    root = await ann.call("broadcast_text_message", text="root")
    first = await ann.call("reply", message_id=root["id"], text="0")
    await bob.sync()
    refs = []
    for n in range(5):
        refs.append(await ann.post("reply", message_id=root["id"], text=f"reply {n}"))
        refs.append(await ann.post("send_text_message", to=first["thread_id"], text=f"text {n}"))
    for ref in refs:
        await ann.answer(ref)
    assert await bob.texts() == [f"{kind} {n}" for n in range(5) for kind in ("reply", "text")]


@pytest.mark.behaviour("P-24")
async def test_a_thread_is_read_in_pages_and_a_message_by_its_id(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    for n in range(1, 11):
        sent = await ann.say("bob", str(n))
    pages: list[tuple[dict[str, Any], list[str], bool]] = [
        ({"thread": "direct_bob", "limit": 4}, ["7", "8", "9", "10"], True),
        ({"thread": "bob", "limit": 4, "before": 7}, ["3", "4", "5", "6"], True),
        ({"thread": "dm.bob.ann", "limit": 100, "before": 3}, ["1", "2"], False),
    ]
    for args, contents, more in pages:
        page = await ann.call("read_thread", **args)
        assert [m["content"] for m in page["messages"]] == contents
        assert (page["more"], page["thread_id"]) == (more, "dm.ann.bob")
    for args, reason in (
        ({"thread": "direct_bob", "limit": 0}, "limit"),
        ({"thread": "direct_bob", "limit": 101}, "limit"),
        ({"thread": "direct_bob", "before": 0}, "before"),
        ({"thread": "what is this"}, "not a thread id"),
        ({"thread": "channel_nowhere"}, "you are not in a thread"),
    ):
        assert reason in (await ann.ask("read_thread", **args))["message"]
    event = (await bob.take(10))[-1]
    message = await bob.call("read_message", id=sent["id"])
    assert Message.model_validate(message) == Message.model_validate(event["message"])
    for wrong, code in (("m99", "unknown_message"), ("99", "bad_request")):
        assert (await bob.ask("read_message", id=wrong))["code"] == code


@pytest.mark.behaviour("P-24")
async def test_threads_are_listed_latest_first_with_their_last_message(network: Network) -> None:
    ann, bob = await network.join("ann", "agent"), await network.join("bob")
    others = [f"p{n}" for n in range(6)]
    for other in others:
        await network.join(other)
        await ann.say(other, "hi")
    await bob.say("p1", "not for ann")
    await ann.call("post_to_channel", channel="general", text="in the channel")
    await ann.say("p0", "once more")
    threads = (await ann.call("list_threads"))["threads"]
    assert [(t["id"], t["messages"][0]["content"], t["head"]) for t in threads[:3]] == [
        ("dm.ann.p0", "once more", 2),
        ("channel.general", "in the channel", 1),
        ("dm.ann.p5", "hi", 1),
    ]
    paged: list[str] = []
    page = await ann.call("list_threads", limit=3)
    while page["more"]:
        assert len(page["threads"]) == 3
        paged += [thread["id"] for thread in page["threads"]]
        page = await ann.call("list_threads", limit=3, before=page["threads"][-1]["last_seq"])
    paged += [thread["id"] for thread in page["threads"]]
    assert paged == [thread["id"] for thread in threads]
    assert len(paged) == 7
    assert await ann.call("list_threads", before=1) == {"threads": [], "more": False}
    await ann.call("reply", message_id="m1", text="below it")
    assert (await ann.call("list_threads", limit=1))["threads"][0]["id"].endswith(".t1")
    assert (await ann.call("list_threads", without_replies=True))["threads"] == threads


@pytest.mark.behaviour("P-16")
async def test_mentions_resolve_to_readers_or_are_reported(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await network.join("calc", "agent")
    text = "@bob, `@ann` and @nobody: see @calc_"
    sent = await ann.call("post_to_channel", channel="general", text=text, mentions=["bob"])
    assert sent["unresolved"] == ["nobody"]
    assert sorted(sent["present"]) == ["bob", "calc"]
    assert (await bob.event())["message"]["mentions"] == ["bob", "calc"]
    error = await ann.ask("post_to_channel", channel="general", text="x", mentions=["boob"])
    assert error["code"] == "unknown_participant"
    assert "did you mean bob?" in error["message"]
    assert (await ann.say("bob", "ask @calc"))["unresolved"] == ["calc"], "calc cannot read it"
    error = await ann.ask("send_text_message", to="bob", text="x", mentions=["calc"])
    assert error["code"] == "unknown_participant"


@pytest.mark.behaviour("P-25")
async def test_everyone_is_signalled_when_a_participant_joins_or_leaves(network: Network) -> None:
    ann = await network.join("ann")
    assert [p["id"] for p in (await ann.signal("presence"))["data"]["online"]] == ["ann"]
    bob = await network.join("bob", card={"description": "Bob"})
    signal = await ann.signal("presence")
    (online,) = signal["data"]["online"]
    assert (signal["sender"], online["id"], online["present"]) == ("hub", "bob", True)
    assert online["card"]["description"] == "Bob"
    await bob.close()
    signal = await ann.signal("presence")
    assert (signal["data"]["offline"], signal["data"]["online"]) == (["bob"], [])
    people = (await ann.call("list_participants"))["participants"]
    assert [(p["id"], p["present"]) for p in people] == [("ann", True), ("bob", False)]


@pytest.mark.behaviour("P-26")
async def test_a_signal_reaches_the_readers_of_its_thread_and_is_never_stored(
    network: Network,
) -> None:
    ann, bob, carol = [await network.join(name) for name in ("ann", "bob", "carol")]
    await ann.say("bob", "hi")
    await ann.send(op="signal", type="typing", thread_id="direct_bob", data={"on": True})
    signal = await bob.signal("typing")
    assert (signal["sender"], signal["thread_id"]) == ("ann", "dm.ann.bob")
    assert signal["data"] == {"on": True}
    await ann.send(op="signal", type="typing", thread_id="nowhere at all")
    await carol.send(op="signal", type="typing", thread_id="dm.ann.bob")
    await ann.send(op="signal", type="mood", sender="hub", data="busy")
    assert (await carol.signal("mood"))["sender"] == "ann", "a sender cannot be forged"
    for peer in (ann, carol):
        await peer.sync()
        assert [s for s in peer.signals if s["type"] in ("typing", "mood")] == []
    assert network.hub.kernel.log.head == 1


@pytest.mark.behaviour("B-4")
async def test_channels_need_plain_names_and_known_members(network: Network) -> None:
    ann = await network.join("ann")
    error = await ann.ask("create_channel", name="desk", members=["bob"])
    assert error["code"] == "unknown_participant"
    for name in ("a b", "", "x" * 65, "ä"):
        assert (await ann.ask("create_channel", name=name))["code"] == "bad_request"
    for name in ("one", "two"):
        await ann.call("create_channel", name=name)
    error = await ann.ask("create_channel", name="three")
    assert (error["code"], error["message"]) == ("limit", "a network has at most 3 channels")
    names = [channel["name"] for channel in (await ann.call("list_channels"))["channels"]]
    assert names == ["general", "one", "two"]
