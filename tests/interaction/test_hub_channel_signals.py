"""Channel signals: connected people are notified of new channels and of changed members."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.network.notifications import HUB_SIGNALS
from tests.interaction.peers import Frame, Network, Networks, Peer, config
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("P-40")
NETWORK = config(channels={"desk": {"description": "Work", "members": "all"}})


def changed(name: str, *members: str, description: str = "") -> Frame:
    data = {"name": name, "description": description, "members": sorted(members)}
    return {"op": "signal", "type": "channel", "sender": "hub", "data": data}


async def channel_signals(peer: Peer) -> list[Frame]:
    """The signals about channels that have arrived by now."""
    await peer.sync()
    return [signal for signal in peer.signals if signal["type"] == "channel"]


@pytest.mark.behaviour("P-2")
async def test_people_are_notified_of_each_change_of_a_channel(network: Network) -> None:
    ann = await network.join("ann")
    bot = await network.join("bot", "agent")
    assert await ann.signal("channel") == changed("desk", "ann", "bot", description="Work")
    bot = await network.join("bot", "agent")  # a reconnect is no change
    bob = await network.join("bob")
    assert (await ann.signal("channel"))["data"]["members"] == ["ann", "bob", "bot"]
    await bob.signal("channel")
    await ann.call("create_channel", name="plans", description="Next", members=["bot"])
    for peer in (ann, bob):
        assert await peer.signal("channel") == changed("plans", "ann", "bot", description="Next")
    await bob.call("join_channel", channel="plans")
    assert await ann.signal("channel") == changed("plans", "ann", "bob", "bot", description="Next")
    await bot.call("leave_channel", channel="plans")
    assert await ann.signal("channel") == changed("plans", "ann", "bob", description="Next")
    await ann.call("join_channel", channel="desk")  # it is a member already
    await bob.call("leave_channel", channel="desk")
    assert (await ann.signal("channel"))["data"]["members"] == ["ann", "bot"]
    await bob.call("leave_channel", channel="desk")
    await bot.call("create_channel", name="last")
    assert await ann.signal("channel") == changed("last", "bot")
    assert await channel_signals(bot) == [], "agents are not notified"
    channels = (await network.join("ann")).ready["channels"]
    assert {channel["name"]: sorted(channel["members"]) for channel in channels} == {
        "desk": ["ann", "bot"],
        "plans": ["ann", "bob"],
        "last": ["bot"],
    }


async def test_frequent_changes_of_a_channel_are_merged_into_few_signals(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.network.notifications.CHANNEL_AFTER_S", 0.3)
    ann, loop = await network.join("ann"), asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(network.join(f"bot{n}", "agent") for n in range(50)))
    signals = [await ann.signal("channel")]
    while len(signals[-1]["data"]["members"]) < 51:
        signals.append(await ann.signal("channel"))
    assert len(signals) <= 2 + (loop.time() - began) / 0.3, "on a slow machine, more"
    counts = [len(signal["data"]["members"]) for signal in signals]
    assert counts == sorted(set(counts)), "each has more members than the one before"


@pytest.mark.behaviour("S-5")
async def test_no_one_is_notified_of_earlier_channels_or_of_one_that_was_not_stored(
    in_memory: Networks, moody: MoodyStore
) -> None:
    async with in_memory.start(store=moody) as network:
        bot = await network.join("bot", "agent")
        await bot.call("create_channel", name="early")
        ann = await network.join("ann")
        moody.failing = 1
        assert (await bot.ask("create_channel", name="lost"))["temporary"]
        await bot.call("create_channel", name="late")
        assert await ann.signal("channel") == changed("late", "bot")
        assert await channel_signals(ann) == []
        assert [channel["name"] for channel in ann.ready["channels"]] == ["early"]


@pytest.mark.behaviour("P-26")
async def test_a_client_cannot_send_the_signals_of_the_hub(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    types = [*HUB_SIGNALS, "mod.reactions", "mod.threads"]
    for type in types:
        await bob.send(op="signal", type=type, data={"name": "x", "members": ["bob"]})
    await bob.sync()
    for type, refused in zip(types, bob.strays, strict=True):
        assert refused["code"] == "bad_request"
        assert type in refused["message"]
    await ann.sync()
    assert [signal for signal in ann.signals if signal.get("sender") == "bob"] == []


async def test_a_post_to_a_channel_that_is_being_created_gets_a_temporary_error(
    network: Network, moody: MoodyStore
) -> None:
    post = {"channel": "plans", "text": "hello"}
    ann = await network.join("ann")
    moody.gate.clear()
    created = await ann.post("create_channel", name="plans")
    await moody.until_waiting()
    early = await ann.ask("post_to_channel", **post)
    assert (early["code"], early["temporary"]) == ("unknown_channel", True)
    moody.gate.set()
    assert (await ann.answer(created))["value"]["name"] == "plans"
    assert (await ann.call("post_to_channel", **post))["tseq"] == 1
