"""What was said in private stays there, even before those who own the network, who may look into
what agents say among themselves.
"""

from __future__ import annotations

import pytest

from hubbub.network.auth import new_token
from tests.interaction.peers import Network, Networks, Peer, config


@pytest.mark.behaviour("P-12")
async def test_an_owner_does_not_read_the_conversations_of_others(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    eve = await network.join("eve")  # a person in an open network: she may do what owners do
    assert "head" in await eve.call("network_status")
    secret = await ann.say("bob", "between us")
    await bob.texts()
    assert (await eve.ask("read_message", id=secret["id"]))["code"] == "unknown_message"
    assert (await eve.ask("read_thread", thread="dm.ann.bob"))["code"] == "unknown_thread"
    assert (await eve.ask("reply", message_id=secret["id"], text="oh"))["code"] == (
        "unknown_message"
    )


async def test_the_operator_reads_what_it_is_asked_to_look_into(network: Network) -> None:
    ann = await network.join("ann")
    await network.join("bob")
    secret = await ann.say("bob", "between us")
    operator = await network.join("operator", "service")
    assert (await operator.call("read_message", id=secret["id"]))["content"] == "between us"
    page = await operator.call("read_thread", thread="dm.ann.bob")
    assert [message["content"] for message in page["messages"]] == ["between us"]


@pytest.mark.behaviour("P-13")
async def test_a_channel_whose_members_are_named_is_closed_to_others(in_memory: Networks) -> None:
    file = config(humans={"ann": {}}, channels={"desk": {"members": ["ann"]}})
    async with in_memory.start(file) as network:
        ann, eve = await network.join("ann"), await network.join("eve")
        await ann.call("post_to_channel", channel="desk", text="among us")
        assert (await eve.ask("join_channel", channel="desk"))["code"] == "forbidden"
        assert (await eve.ask("read_thread", thread="channel_desk"))["code"] == "unknown_thread"
        await ann.call("leave_channel", channel="desk")
        assert await ann.call("join_channel", channel="desk") == {"done": True}


# What agents say among themselves -------------------------------------------------------------


async def among_agents(network: Network) -> tuple[Peer, Peer, str, str]:
    """Two agents, a message of one to the other, and a reply in the thread below it."""
    one = await network.join("one", "agent")
    two = await network.join("two", "agent")
    said = await one.say("two", "do you know?")
    below = await two.call("reply", message_id=said["id"], text="no")
    return one, two, said["id"], below["id"]


LOOKED_AT = "dm.one.two"


@pytest.mark.behaviour("P-39")
async def test_an_owner_looks_into_what_agents_say_among_themselves(network: Network) -> None:
    _one, _two, said, below = await among_agents(network)
    owner = await network.join("ann")
    assert (await owner.call("read_message", id=said))["content"] == "do you know?"
    assert (await owner.call("read_message", id=below))["content"] == "no"
    for thread, content in ((LOOKED_AT, "do you know?"), (f"{LOOKED_AT}.t{said[1:]}", "no")):
        page = await owner.call("read_thread", thread=thread)
        assert [message["content"] for message in page["messages"]] == [content]
    receipts = (await owner.call("read_receipts", id=said))["receipts"]
    assert [(each["participant"], each["woken"]) for each in receipts] == [("two", True)]
    page = await owner.call("read_interaction", id="i" + said[1:])
    assert ([message["id"] for message in page["messages"]], page["hidden"]) == ([said], 0)


@pytest.mark.behaviour("P-39", "P-12")
async def test_a_look_delivers_and_lists_and_marks_nothing(network: Network) -> None:
    owner = await network.join("ann")
    one, *_ = await among_agents(network)
    await owner.call("read_thread", thread=LOOKED_AT)
    await one.say("two", "still there?")
    assert await owner.sync() == []
    assert (await owner.call("list_threads"))["threads"] == []
    assert (await network.join("ann")).ready["threads"] == []
    error = await owner.ask("mark_read", thread=LOOKED_AT, upto=1)
    assert error["code"] == "unknown_thread"
    error = await owner.ask("mark_unread", thread=LOOKED_AT, since=1)
    assert error["code"] == "unknown_thread"


@pytest.mark.behaviour("P-39", "P-12")
async def test_an_owner_does_not_speak_where_it_only_looks(network: Network) -> None:
    owner = await network.join("ann")
    one, _two, said, _below = await among_agents(network)
    assert (await owner.ask("reply", message_id=said, text="oh"))["code"] == "unknown_message"
    error = await owner.ask("send_text_message", to=LOOKED_AT, text="oh")
    assert error["code"] == "unknown_thread"
    error = await owner.ask("send_text_message", to="one", text="oh", cause=said)
    assert error["code"] == "unknown_message"
    await owner.send(op="signal", type="typing", thread_id=LOOKED_AT, data=True)
    await owner.sync()
    await one.sync()
    assert [signal for signal in one.signals if signal["type"] == "typing"] == []


@pytest.mark.behaviour("P-39", "P-12")
@pytest.mark.parametrize("others", [["bob"], ["two", "bob"], ["two", "web", "bob"]])
async def test_a_conversation_with_a_person_in_it_is_closed_to_owners(
    network: Network, others: list[str]
) -> None:
    one, owner = await network.join("one", "agent"), await network.join("ann")
    for name, kind in (("two", "agent"), ("bob", "human"), ("web", "service")):
        await network.join(name, kind)
    said = await one.say(others, "between us")
    await one.call("reply", message_id=said["id"], text="and below")
    assert (await owner.ask("read_message", id=said["id"]))["code"] == "unknown_message"
    assert (await owner.ask("read_receipts", id=said["id"]))["code"] == "unknown_message"
    for thread in (said["thread_id"], f"{said['thread_id']}.t{said['seq']}"):
        assert (await owner.ask("read_thread", thread=thread))["code"] == "unknown_thread"
    page = await owner.call("read_interaction", id=f"i{said['seq']}")
    assert (page["messages"], page["hidden"]) == ([], 1)


@pytest.mark.behaviour("P-39")
async def test_services_are_no_people_and_channels_no_conversations(in_memory: Networks) -> None:
    file = config(channels={"desk": {"members": ["one", "web"]}})
    async with in_memory.start(file) as network:
        one, _web = await network.join("one", "agent"), await network.join("web", "service")
        owner = await network.join("ann")
        said = await one.say("web", "to the web")
        assert (await owner.call("read_message", id=said["id"]))["content"] == "to the web"
        posted = await one.call("post_to_channel", channel="desk", text="to the desk")
        assert (await owner.ask("read_message", id=posted["id"]))["code"] == "unknown_message"
        assert (await owner.ask("read_thread", thread="channel_desk"))["code"] == "unknown_thread"


@pytest.mark.behaviour("P-39", "D-4")
async def test_nobody_but_owners_looks_into_what_agents_say(in_memory: Networks) -> None:
    file = config(network={"auth": "tokens"}, humans={"ann": {"roles": ["owner"]}, "bob": {}})
    async with in_memory.start(file) as network:
        peers: dict[str, Peer] = {}
        for name in ("ann", "bob", "one", "two", "spy"):
            token = new_token()
            network.hub.joining.add_token(name, token)
            kind = "human" if name in ("ann", "bob") else "agent"
            peers[name] = await network.join(name, kind, token=token)
        said = await peers["one"].say("two", "do you know?")
        for name in ("bob", "spy"):
            asked = peers[name].ask
            assert (await asked("read_message", id=said["id"]))["code"] == "unknown_message"
            assert (await asked("read_receipts", id=said["id"]))["code"] == "unknown_message"
            assert (await asked("read_thread", thread=LOOKED_AT))["code"] == "unknown_thread"
            error = await asked("read_interaction", id=f"i{said['seq']}")
            assert error["code"] == "unknown_interaction"
        page = await peers["ann"].call("read_thread", thread=LOOKED_AT)
        assert [message["content"] for message in page["messages"]] == ["do you know?"]
