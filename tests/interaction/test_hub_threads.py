"""Reply threads, reading back, mentions, signals."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub.protocol.messages import Message
from tests.interaction.peers import Network, Networks, config


@pytest.mark.behaviour("P-10")
async def test_a_reply_opens_a_thread_under_its_message(network: Network) -> None:
    ann, bob, carol = [await network.join(name) for name in ("ann", "bob", "carol")]
    root = await ann.say("bob", "root")
    reply = await bob.call("reply", message_id=root["id"], text="under it")
    assert reply["thread_id"] == f"dm.ann.bob.t{root['seq']}"
    assert reply["tseq"] == 1
    message = (await ann.event())["message"]
    assert (message["reply_to"], message["recipients"]) == (root["id"], ["ann"])
    again = await ann.call("reply", message_id=root["id"], text="me too")
    assert (again["thread_id"], again["tseq"]) == (reply["thread_id"], 2)
    in_thread = await ann.say(f"direct_bob.t{root['seq']}", "by its name")
    assert (in_thread["thread_id"], in_thread["tseq"]) == (reply["thread_id"], 3)
    assert await carol.sync() == []


@pytest.mark.behaviour("P-10")
async def test_replies_nest_to_five_levels_and_no_further(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    message = await ann.call("broadcast_text_message", text="0")
    for level in range(1, 6):
        message = await bob.call("reply", message_id=message["id"], text=str(level))
        assert message["thread_id"].count(".t") == level
    error = await ann.ask("reply", message_id=message["id"], text="6")
    assert error["code"] == "thread_depth"
    assert "5 levels" in error["message"]
    inside = await ann.say(message["thread_id"], "beside it")
    assert inside["thread_id"] == message["thread_id"]


async def test_the_depth_of_threads_can_be_configured(in_memory: Networks) -> None:
    file = config(network={"limits": {"thread_depth": 0}})
    async with in_memory.start(file) as network:
        ann = await network.join("ann")
        root = await ann.call("broadcast_text_message", text="0")
        assert (await ann.ask("reply", message_id=root["id"], text="1"))["code"] == "thread_depth"


async def test_who_may_not_read_a_message_cannot_reply_to_it(network: Network) -> None:
    ann, _bob = await network.join("ann"), await network.join("bob")
    calc = await network.join("calc", "agent")
    root = await ann.say("bob", "root")
    for message_id, code in ((root["id"], "unknown_message"), ("m99", "unknown_message")):
        error = await calc.ask("reply", message_id=message_id, text="x")
        assert error["code"] == code
    assert (await calc.ask("reply", message_id="root", text="x"))["code"] == "bad_request"


@pytest.mark.behaviour("P-18")
async def test_replies_and_messages_sent_in_one_breath_keep_their_order(network: Network) -> None:
    """A reply reads its message from the store first; what follows it waits."""
    ann, bob = await network.join("ann"), await network.join("bob")
    root = await ann.call("broadcast_text_message", text="root")
    first = await ann.call("reply", message_id=root["id"], text="0")
    await bob.sync()
    expected = []
    refs = []
    for n in range(5):
        refs.append(await ann.post("reply", message_id=root["id"], text=f"reply {n}"))
        refs.append(await ann.post("send_text_message", to=first["thread_id"], text=f"text {n}"))
        expected += [f"reply {n}", f"text {n}"]
    for ref in refs:
        await ann.answer(ref)
    assert await bob.texts() == expected


@pytest.mark.behaviour("P-24")
async def test_a_thread_is_read_back_page_by_page(network: Network) -> None:
    ann, _bob = await network.join("ann"), await network.join("bob")
    for n in range(1, 11):
        await ann.say("bob", str(n))
    page = await ann.call("read_thread", thread="direct_bob", limit=4)
    assert [m["content"] for m in page["messages"]] == ["7", "8", "9", "10"]
    assert (page["more"], page["thread_id"]) == (True, "dm.ann.bob")
    page = await ann.call("read_thread", thread="bob", limit=4, before=7)
    assert [m["content"] for m in page["messages"]] == ["3", "4", "5", "6"]
    page = await ann.call("read_thread", thread="dm.bob.ann", limit=100, before=3)
    assert [m["content"] for m in page["messages"]] == ["1", "2"]
    assert page["more"] is False


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"thread": "direct_bob", "limit": 0}, "limit"),
        ({"thread": "direct_bob", "limit": 101}, "limit"),
        ({"thread": "direct_bob", "before": 0}, "before"),
        ({"thread": "what is this"}, "no thread id"),
        ({"thread": "channel_nowhere"}, "you are in no thread"),
    ],
)
async def test_a_wrong_page_is_an_error(network: Network, args: dict[str, Any], says: str) -> None:
    ann, _bob = await network.join("ann"), await network.join("bob")
    await ann.say("bob", "x")
    assert says in (await ann.ask("read_thread", **args))["message"]


@pytest.mark.behaviour("P-24")
async def test_threads_are_listed_latest_first_with_their_last_message(in_memory: Networks) -> None:
    async with in_memory.start(config(channels={"general": {}})) as network:
        ann = await network.join("ann", "agent")
        bob, carol = await network.join("bob"), await network.join("carol")
        await ann.say("bob", "1")
        await ann.say("carol", "2")
        await bob.say("carol", "not for ann")
        await ann.call("post_to_channel", channel="general", text="3")
        await ann.say("bob", "4")
        threads = (await ann.call("list_threads"))["threads"]
        assert [(t["id"], t["messages"][0]["content"]) for t in threads] == [
            ("dm.ann.bob", "4"),
            ("channel.general", "3"),
            ("dm.ann.carol", "2"),
        ]
        assert [t["head"] for t in threads] == [2, 1, 1]
        assert len((await ann.call("list_threads", limit=1))["threads"]) == 1
        assert len((await carol.call("list_threads"))["threads"]) == 3


@pytest.mark.behaviour("P-24")
async def test_a_message_is_read_by_its_id(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    sent = await ann.say("bob", "hi")
    event = await bob.event()
    found = await bob.call("read_message", id=sent["id"])
    assert Message.model_validate(found) == Message.model_validate(event["message"])
    for wrong, code in (("m99", "unknown_message"), ("99", "bad_request")):
        assert (await bob.ask("read_message", id=wrong))["code"] == code


@pytest.mark.behaviour("P-16")
async def test_mentions_are_ids_and_what_names_nobody_is_told(in_memory: Networks) -> None:
    async with in_memory.start(config(channels={"general": {}})) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await network.join("calc", "agent")
        sent = await ann.call(
            "post_to_channel",
            channel="general",
            text="@bob, `@ann` and @nobody: see @calc_",
            mentions=["bob"],
        )
        assert sent["unresolved"] == ["nobody"]
        assert sorted(sent["present"]) == ["bob", "calc"]
        assert (await bob.event())["message"]["mentions"] == ["bob", "calc"]
        error = await ann.ask("post_to_channel", channel="general", text="x", mentions=["boob"])
        assert error["code"] == "unknown_participant"
        assert "did you mean bob?" in error["message"]


async def test_who_does_not_read_a_thread_cannot_be_mentioned_there(network: Network) -> None:
    ann, _bob = await network.join("ann"), await network.join("bob")
    await network.join("carol")
    assert (await ann.say("bob", "ask @carol"))["unresolved"] == ["carol"]
    error = await ann.ask("send_text_message", to="bob", text="x", mentions=["carol"])
    assert error["code"] == "unknown_participant"


@pytest.mark.behaviour("P-25")
async def test_everybody_hears_who_comes_and_goes(network: Network) -> None:
    ann = await network.join("ann")
    assert [p["id"] for p in (await ann.signal("presence"))["data"]["online"]] == ["ann"]
    bob = await network.join("bob", card={"description": "Bob"})
    came = await ann.signal("presence")
    (online,) = came["data"]["online"]
    assert (came["sender"], online["id"], online["present"]) == ("hub", "bob", True)
    assert online["card"]["description"] == "Bob"
    await bob.close()
    went = await ann.signal("presence")
    assert (went["data"]["offline"], went["data"]["online"]) == (["bob"], [])
    people = (await ann.call("list_participants"))["participants"]
    assert [(p["id"], p["present"]) for p in people] == [("ann", True), ("bob", False)]


@pytest.mark.behaviour("P-26")
async def test_typing_is_told_to_the_readers_of_the_thread_only(network: Network) -> None:
    ann, bob, carol = [await network.join(name) for name in ("ann", "bob", "carol")]
    await ann.say("bob", "hi")
    await ann.send(op="signal", type="typing", thread_id="direct_bob", data={"on": True})
    signal = await bob.signal("typing")
    assert (signal["sender"], signal["thread_id"]) == ("ann", "dm.ann.bob")
    assert signal["data"] == {"on": True}
    await ann.send(op="signal", type="typing", thread_id="nowhere at all")
    await carol.send(op="signal", type="typing", thread_id="dm.ann.bob")
    await ann.send(op="signal", type="activity", data="busy")
    assert (await carol.signal("activity"))["sender"] == "ann"
    for peer in (ann, carol):
        await peer.sync()
        assert [s for s in peer.signals if s["type"] in ("typing", "activity")] == []


@pytest.mark.behaviour("P-26")
async def test_nobody_signals_in_the_name_of_another(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await ann.send(op="signal", type="mood", sender="hub", data=1)
    assert (await bob.signal("mood"))["sender"] == "ann"


@pytest.mark.behaviour("P-26")
@pytest.mark.parametrize("type", ["presence", "caught_up", "read", "delivered"])
async def test_what_the_hub_signals_no_participant_can(network: Network, type: str) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    data = {"online": [], "offline": ["bob"]}
    await ann.send(op="signal", type=type, data=data)
    error = await ann.expect("error")
    assert (error["code"], error["message"]) == (
        "bad_request",
        f"type: {type} is for the hub to say",
    )
    await bob.sync()
    assert [s for s in bob.signals if s["sender"] != "hub"] == []


@pytest.mark.behaviour("P-26")
async def test_signals_are_never_stored(network: Network) -> None:
    ann = await network.join("ann")
    await ann.send(op="signal", type="typing", thread_id="broadcast")
    await ann.sync()
    assert network.hub.log.head == 0


@pytest.mark.behaviour("B-4")
async def test_a_network_has_so_many_channels_and_no_more(in_memory: Networks) -> None:
    async with in_memory.start(config(network={"limits": {"channels": 2}})) as network:
        ann = await network.join("ann")
        for name in ("one", "two"):
            await ann.call("create_channel", name=name)
        error = await ann.ask("create_channel", name="three")
        assert (error["code"], error["message"]) == ("limit", "a network has at most 2 channels")


async def test_a_channel_can_be_made_only_with_people_who_exist(network: Network) -> None:
    ann = await network.join("ann")
    error = await ann.ask("create_channel", name="desk", members=["bob"])
    assert error["code"] == "unknown_participant"
    assert (await ann.call("list_channels"))["channels"] == []
    for name in ("a b", "", "x" * 65, "ä"):
        assert (await ann.ask("create_channel", name=name))["code"] == "bad_request"


@pytest.mark.behaviour("P-24")
async def test_threads_are_listed_page_by_page(network: Network) -> None:
    ann = await network.join("ann")
    others = [f"p{n}" for n in range(7)]
    for other in others:
        await network.join(other)
        await ann.say(other, "hi")
    await ann.say("p0", "once more")
    found: list[str] = []
    page = await ann.call("list_threads", limit=3)
    while page["more"]:
        assert len(page["threads"]) == 3
        found += [thread["id"] for thread in page["threads"]]
        page = await ann.call("list_threads", limit=3, before=page["threads"][-1]["last_seq"])
    found += [thread["id"] for thread in page["threads"]]
    assert found == [f"dm.ann.{other}" for other in ("p0", *reversed(others[1:]))]
    assert await ann.call("list_threads", before=1) == {"threads": [], "more": False}
