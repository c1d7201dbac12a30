"""News about channels: people who are connected hear of new ones, and of who comes and goes."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.network.news import HUBS_SIGNALS
from tests.interaction.peers import Frame, Network, Networks, Peer, config
from tests.interaction.stores import MoodyStore

DESK = config(channels={"desk": {"description": "Work", "members": "all"}})


def told(name: str, *members: str, description: str = "") -> Frame:
    data = {"name": name, "description": description, "members": sorted(members)}
    return {"op": "signal", "type": "channel", "sender": "hub", "data": data}


async def heard(peer: Peer) -> list[Frame]:
    """What has been told of channels by now."""
    await peer.sync()
    found = [signal for signal in peer.signals if signal["type"] == "channel"]
    peer.signals = [signal for signal in peer.signals if signal["type"] != "channel"]
    return found


@pytest.mark.behaviour("P-40")
async def test_people_hear_of_a_new_channel_and_of_who_joins_and_leaves(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    bot = await network.join("bot", "agent")
    await ann.call("create_channel", name="plans", description="What is next", members=["bot"])
    for peer in (ann, bob):
        expected = told("plans", "ann", "bot", description="What is next")
        assert await peer.signal("channel") == expected
    await bob.call("join_channel", channel="plans")
    expected = told("plans", "ann", "bob", "bot", description="What is next")
    assert await ann.signal("channel") == expected
    await bot.call("leave_channel", channel="plans")
    assert await ann.signal("channel") == told("plans", "ann", "bob", description="What is next")
    assert await heard(bot) == [], "agents need not know"


@pytest.mark.behaviour("P-40")
async def test_who_is_new_in_the_network_is_told_as_a_member_of_its_open_channels(
    in_memory: Networks,
) -> None:
    async with in_memory.start(DESK) as network:
        ann = await network.join("ann")
        await network.join("bot", "agent")
        assert await ann.signal("channel") == told("desk", "ann", "bot", description="Work")
        again = await network.join("bot", "agent")
        await again.call("create_channel", name="other")
        assert await ann.signal("channel") == told("other", "bot"), "coming back is no change"


@pytest.mark.behaviour("P-40")
async def test_many_changes_of_a_channel_are_few_signals(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.network.news.CHANNEL_AFTER_S", 0.3)
    async with in_memory.start(DESK) as network:
        ann = await network.join("ann")
        await asyncio.gather(*(network.join(f"bot{n}", "agent") for n in range(100)))
        signals = [await ann.signal("channel")]
        while len(signals[-1]["data"]["members"]) < 101:
            signals.append(await ann.signal("channel"))
        assert len(signals) < 50
        counts = [len(signal["data"]["members"]) for signal in signals]
        assert counts == sorted(set(counts)), "each says more than the one before"


@pytest.mark.behaviour("P-40")
async def test_what_changes_nothing_is_no_news(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        ann = await network.join("ann")
        await ann.call("join_channel", channel="desk")
        await ann.call("create_channel", name="last")
        assert await ann.signal("channel") == told("last", "ann")
        await ann.call("leave_channel", channel="desk")
        assert await ann.signal("channel") == told("desk", description="Work")
        await ann.call("leave_channel", channel="desk")
        await ann.call("join_channel", channel="last")
        await ann.call("create_channel", name="really")
        assert await ann.signal("channel") == told("really", "ann")


@pytest.mark.behaviour("P-40", "S-5")
async def test_a_channel_that_could_not_be_stored_is_no_news(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann = await network.join("ann")
        store.failing = 1
        assert (await ann.ask("create_channel", name="lost"))["temporary"]
        await ann.call("create_channel", name="kept")
        assert await ann.signal("channel") == told("kept", "ann")
        assert await heard(ann) == []


@pytest.mark.behaviour("P-40")
async def test_where_no_person_is_nothing_is_gathered(network: Network) -> None:
    bot = await network.join("bot", "agent")
    await bot.call("create_channel", name="early")
    ann = await network.join("ann")
    await bot.call("create_channel", name="late")
    assert await ann.signal("channel") == told("late", "bot")
    assert [channel["name"] for channel in ann.ready["channels"]] == ["early"]


@pytest.mark.behaviour("P-40", "P-2")
async def test_ready_with_the_news_after_it_is_a_fresh_ready(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        await bot.call("create_channel", name="plans", members=["ann"])
        await ann.call("leave_channel", channel="desk")
        await bot.call("join_channel", channel="desk")
        await bot.call("create_channel", name="last")
        known = {channel["name"]: channel for channel in ann.ready["channels"]}
        while "last" not in known:
            data = (await ann.signal("channel"))["data"]
            known[data["name"]] = {**data, "joined": "ann" in data["members"]}
        fresh = (await network.join("ann")).ready["channels"]
        assert known == {channel["name"]: channel for channel in fresh}


@pytest.mark.behaviour("P-40", "P-26")
@pytest.mark.parametrize("type", sorted(HUBS_SIGNALS))
async def test_only_the_hub_says_what_readers_believe(network: Network, type: str) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await bob.send(op="signal", type=type, data={"name": "x", "members": ["bob"]})
    await bob.sync()
    (refused,) = bob.strays
    assert (refused["code"], type in refused["message"]) == ("bad_request", True)
    await ann.sync()
    assert [each for each in ann.signals if each.get("sender") == "bob"] == []
