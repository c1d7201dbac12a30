"""Private conversations are closed even to owners, who can inspect only those among agents."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub.network.auth import new_token
from tests.interaction.peers import Network, Networks, Peer, config

THREAD = "dm.one.two"


async def assert_hidden(peer: Peer, message: Any) -> None:
    """For this peer, the message, its thread and its reply thread do not exist."""
    for call in ("read_message", "read_receipts"):
        assert (await peer.ask(call, id=message["id"]))["code"] == "unknown_message"
    reply = await peer.ask("reply", message_id=message["id"], text="x")
    assert reply["code"] == "unknown_message"
    thread = message["thread_id"]
    for name in (thread, f"{thread}.t{message['seq']}"):
        assert (await peer.ask("read_thread", thread=name))["code"] == "unknown_thread"
    page = await peer.ask("read_interaction", id=f"i{message['seq']}")
    if page["op"] == "result":  # owners see that a message is hidden from them
        assert (page["value"]["messages"], page["value"]["hidden"]) == ([], 1)
    else:
        assert page["code"] == "unknown_interaction"


@pytest.mark.behaviour("P-12")
async def test_an_owner_cannot_read_private_conversations_of_others_but_the_operator_can(
    network: Network,
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    eve = await network.join("eve")  # every person of an open network has an owner's rights
    assert "head" in await eve.call("network_status")
    secret = await ann.say("bob", "between us")
    await bob.texts()
    await assert_hidden(eve, secret)
    operator = await network.join("operator", "service")
    assert (await operator.call("read_message", id=secret["id"]))["content"] == "between us"
    page = await operator.call("read_thread", thread="dm.ann.bob")
    assert [message["content"] for message in page["messages"]] == ["between us"]


@pytest.mark.behaviour("P-13")
async def test_a_channel_with_listed_members_is_closed_to_others(in_memory: Networks) -> None:
    file = config(humans={"ann": {}}, channels={"desk": {"members": ["ann"]}})
    async with in_memory.start(file) as network:
        ann, eve = await network.join("ann"), await network.join("eve")
        await ann.call("post_to_channel", channel="desk", text="among us")
        assert (await eve.ask("join_channel", channel="desk"))["code"] == "forbidden"
        assert (await eve.ask("read_thread", thread="channel_desk"))["code"] == "unknown_thread"
        await ann.call("leave_channel", channel="desk")
        assert await ann.call("join_channel", channel="desk") == {"done": True}


@pytest.mark.behaviour("P-39", "P-12")
async def test_an_owner_can_inspect_agents_conversations_invisibly(network: Network) -> None:
    owner = await network.join("ann")
    one, two = await network.join("one", "agent"), await network.join("two", "agent")
    sent = (await one.say("two", "do you know?"))["id"]
    below = (await two.call("reply", message_id=sent, text="no"))["id"]
    assert (await owner.call("read_message", id=below))["content"] == "no"
    for thread, content in ((THREAD, "do you know?"), (f"{THREAD}.t{sent[1:]}", "no")):
        page = await owner.call("read_thread", thread=thread)
        assert [message["content"] for message in page["messages"]] == [content]
    receipts = (await owner.call("read_receipts", id=sent))["receipts"]
    assert [(each["participant"], each["woken"]) for each in receipts] == [("two", True)]
    page = await owner.call("read_interaction", id="i" + sent[1:])
    assert ([message["id"] for message in page["messages"]], page["hidden"]) == ([sent], 0)
    await one.say("two", "still there?")
    assert await owner.sync() == []
    assert (await owner.call("list_threads"))["threads"] == []
    assert (await network.join("ann")).ready["threads"] == []
    for call, args, code in (
        ("mark_read", {"thread": THREAD, "upto": 1}, "unknown_thread"),
        ("mark_unread", {"thread": THREAD, "since": 1}, "unknown_thread"),
        ("reply", {"message_id": sent, "text": "oh"}, "unknown_message"),
        ("send_text_message", {"to": THREAD, "text": "oh"}, "unknown_thread"),
        ("send_text_message", {"to": "one", "text": "oh", "cause": sent}, "unknown_message"),
    ):
        assert (await owner.ask(call, **args))["code"] == code, call
    await owner.send(op="signal", type="typing", thread_id=THREAD, data=True)
    await owner.sync()
    await one.sync()
    assert [signal for signal in one.signals if signal["type"] == "typing"] == []


@pytest.mark.behaviour("P-39", "P-12")
async def test_owners_cannot_read_a_conversation_that_has_a_person(in_memory: Networks) -> None:
    file = config(channels={"desk": {"members": ["one", "web"]}})
    async with in_memory.start(file) as network:
        one, owner = await network.join("one", "agent"), await network.join("ann")
        for name, kind in (("two", "agent"), ("bob", "human"), ("web", "service")):
            await network.join(name, kind)
        for others in (["bob"], ["two", "bob"], ["two", "web", "bob"]):
            sent = await one.say(others, "between us")
            await one.call("reply", message_id=sent["id"], text="and below")
            await assert_hidden(owner, sent)
        sent = await one.say("web", "a service is not a person")
        assert (await owner.call("read_message", id=sent["id"]))["content"]
        posted = await one.call("post_to_channel", channel="desk", text="in a channel")
        assert (await owner.ask("read_message", id=posted["id"]))["code"] == "unknown_message"
        assert (await owner.ask("read_thread", thread="channel_desk"))["code"] == "unknown_thread"


@pytest.mark.behaviour("P-39", "D-4")
async def test_only_owners_can_inspect_agents_conversations(in_memory: Networks) -> None:
    file = config(network={"auth": "tokens"}, humans={"ann": {"roles": ["owner"]}, "bob": {}})
    async with in_memory.start(file) as network:
        peers: dict[str, Peer] = {}
        for name in ("ann", "bob", "one", "two", "spy"):
            token = new_token()
            network.hub.gateway.admission.add_token(name, token)
            kind = "human" if name in ("ann", "bob") else "agent"
            peers[name] = await network.join(name, kind, token=token)
        sent = await peers["one"].say("two", "do you know?")
        for name in ("bob", "spy"):
            await assert_hidden(peers[name], sent)
        page = await peers["ann"].call("read_thread", thread=THREAD)
        assert [message["content"] for message in page["messages"]] == ["do you know?"]
