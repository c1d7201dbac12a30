"""News about channels: people who are connected hear of new ones, and of who comes and goes."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.network.notifications import HUB_SIGNALS
from tests.interaction.peers import Frame, Network, Networks, Peer, config
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("P-40")
NETWORK = config(channels={"desk": {"description": "Work", "members": "all"}})


def told(name: str, *members: str, description: str = "") -> Frame:
    data = {"name": name, "description": description, "members": sorted(members)}
    return {"op": "signal", "type": "channel", "sender": "hub", "data": data}


async def heard(peer: Peer) -> list[Frame]:
    """What has been told of channels by now."""
    await peer.sync()
    return [signal for signal in peer.signals if signal["type"] == "channel"]


@pytest.mark.behaviour("P-2")
async def test_people_hear_of_each_change_of_a_channel_and_of_no_other(network: Network) -> None:
    ann = await network.join("ann")
    bot = await network.join("bot", "agent")
    assert await ann.signal("channel") == told("desk", "ann", "bot", description="Work")
    bot = await network.join("bot", "agent")  # coming back is no change
    bob = await network.join("bob")
    assert (await ann.signal("channel"))["data"]["members"] == ["ann", "bob", "bot"]
    await bob.signal("channel")
    await ann.call("create_channel", name="plans", description="Next", members=["bot"])
    for peer in (ann, bob):
        assert await peer.signal("channel") == told("plans", "ann", "bot", description="Next")
    await bob.call("join_channel", channel="plans")
    assert await ann.signal("channel") == told("plans", "ann", "bob", "bot", description="Next")
    await bot.call("leave_channel", channel="plans")
    assert await ann.signal("channel") == told("plans", "ann", "bob", description="Next")
    await ann.call("join_channel", channel="desk")  # it is a member already
    await bob.call("leave_channel", channel="desk")
    assert (await ann.signal("channel"))["data"]["members"] == ["ann", "bot"]
    await bob.call("leave_channel", channel="desk")
    await bot.call("create_channel", name="last")
    assert await ann.signal("channel") == told("last", "bot")
    assert await heard(bot) == [], "agents need not know"
    changed = {"desk": ["ann", "bot"], "plans": ["ann", "bob"], "last": ["bot"]}
    fresh = {each["name"]: each for each in (await network.join("ann")).ready["channels"]}
    assert {name: sorted(each["members"]) for name, each in fresh.items()} == changed


async def test_many_changes_of_a_channel_are_few_signals(
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
    assert counts == sorted(set(counts)), "each says more than the one before"


@pytest.mark.behaviour("S-5")
async def test_a_channel_that_could_not_be_stored_or_that_is_heard_of_by_nobody_is_no_news(
    in_memory: Networks,
) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        bot = await network.join("bot", "agent")
        await bot.call("create_channel", name="early")
        ann = await network.join("ann")
        store.failing = 1
        assert (await bot.ask("create_channel", name="lost"))["temporary"]
        await bot.call("create_channel", name="late")
        assert await ann.signal("channel") == told("late", "bot")
        assert await heard(ann) == []
        assert [channel["name"] for channel in ann.ready["channels"]] == ["early"]


@pytest.mark.behaviour("P-26")
async def test_only_the_hub_says_what_readers_believe(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    for type in HUB_SIGNALS:
        await bob.send(op="signal", type=type, data={"name": "x", "members": ["bob"]})
    await bob.sync()
    for type, refused in zip(HUB_SIGNALS, bob.strays, strict=True):
        assert refused["code"] == "bad_request"
        assert type in refused["message"]
    await ann.sync()
    assert [each for each in ann.signals if each.get("sender") == "bob"] == []


async def test_who_is_too_early_for_a_new_channel_is_told_to_try_again(
    in_memory: Networks,
) -> None:
    store, post = MoodyStore(), {"channel": "plans", "text": "hello"}
    async with in_memory.start(store=store) as network:
        ann = await network.join("ann")
        store.gate.clear()
        made = await ann.post("create_channel", name="plans")
        await store.waiting.wait()
        early = await ann.ask("post_to_channel", **post)
        assert (early["code"], early["temporary"]) == ("unknown_channel", True)
        store.gate.set()
        assert (await ann.answer(made))["value"]["name"] == "plans"
        assert (await ann.call("post_to_channel", **post))["tseq"] == 1
