"""What was said in private stays there, even before those who own the network."""

from __future__ import annotations

import pytest

from tests.interaction.peers import Networks, config


@pytest.mark.behaviour("P-12")
async def test_an_owner_does_not_read_the_conversations_of_others(networks: Networks) -> None:
    async with networks.start() as network:
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


async def test_the_operator_reads_what_it_is_asked_to_look_into(networks: Networks) -> None:
    async with networks.start() as network:
        ann = await network.join("ann")
        await network.join("bob")
        secret = await ann.say("bob", "between us")
        operator = await network.join("operator", "service")
        assert (await operator.call("read_message", id=secret["id"]))["content"] == "between us"
        page = await operator.call("read_thread", thread="dm.ann.bob")
        assert [message["content"] for message in page["messages"]] == ["between us"]


@pytest.mark.behaviour("P-13")
async def test_a_channel_whose_members_are_named_is_closed_to_others(networks: Networks) -> None:
    file = config(humans={"ann": {}}, channels={"desk": {"members": ["ann"]}})
    async with networks.start(file) as network:
        ann, eve = await network.join("ann"), await network.join("eve")
        await ann.call("post_to_channel", channel="desk", text="among us")
        assert (await eve.ask("join_channel", channel="desk"))["code"] == "forbidden"
        assert (await eve.ask("read_thread", thread="channel_desk"))["code"] == "unknown_thread"
        await ann.call("leave_channel", channel="desk")
        assert await ann.call("join_channel", channel="desk") == {"done": True}
