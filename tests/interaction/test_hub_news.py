"""What the hub itself tells of what goes on: what has arrived, and which agents are at work."""

from __future__ import annotations

import pytest

from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import ModerationConfig
from tests.interaction.peers import Frame, Network, Networks, Peer, config
from tests.interaction.stop_harness import HandClock

NETWORK = config(channels={"desk": {"members": ["ann", "bot"]}}, humans={"ann": {}})


async def says(peer: Peer, thread: str | None, **data: object) -> None:
    more = {} if thread is None else {"thread_id": thread}
    await peer.send(op="signal", type="activity", data=data, **more)
    await peer.sync()


async def activities(peer: Peer) -> list[Frame]:
    """All activities that were told by now, without what is the same in all."""
    await peer.sync()
    found = [s for s in peer.signals if s["type"] == "activity"]
    peer.signals = [s for s in peer.signals if s["type"] != "activity"]
    return [{k: v for k, v in s.items() if k not in ("op", "type")} for s in found]


async def states(peer: Peer) -> list[str]:
    """What was told of agents as a whole."""
    told = await activities(peer)
    return [each["data"]["state"] for each in told if "thread_id" not in each]


# Delivery -------------------------------------------------------------------------------------


@pytest.mark.behaviour("P-37")
async def test_people_hear_what_has_arrived(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.network.gateway.WRITE_AFTER_S", 0.0)
    monkeypatch.setattr("hubbub.network.notifications.DELIVERED_AFTER_S", 0.0)
    ann, bob = await network.join("ann"), await network.join("bob")
    bot = await network.join("bot", "agent")
    sent = await ann.say(["bob", "bot"], "hello")
    arrived: dict[str, int] = {}
    for peer in (bob, bot):
        await peer.event()
        await peer.ack(sent["seq"])
    while len(arrived) < 2:
        signal = await ann.signal("delivered")
        assert signal["sender"] == "hub"
        arrived |= signal["data"]
    assert arrived == {"bob": sent["seq"], "bot": sent["seq"]}
    await bot.sync()
    assert [s for s in bot.signals if s["type"] == "delivered"] == [], "agents need not know"


@pytest.mark.behaviour("P-37")
async def test_what_arrives_in_quick_succession_is_told_together_where_a_person_is(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.network.notifications.DELIVERED_AFTER_S", 3600.0)
    one, bot = await network.join("one", "agent"), await network.join("bot", "agent", turns=True)

    async def arrives() -> int:
        sent = await one.say("bot", "hello")
        await bot.event()
        await bot.ack(sent["seq"])  # with a wake in it: written at once
        await bot.sync()
        await network.quiet()
        return int(sent["seq"])

    await arrives()
    ann = await network.join("ann")
    second = await arrives()
    assert (await ann.signal("delivered"))["data"] == {"bot": second}, "not what was before"
    for _ in range(5):
        await arrives()
    await ann.sync()
    assert [s for s in ann.signals if s["type"] == "delivered"] == [], "once in a while"


# Work -----------------------------------------------------------------------------------------


async def at_the_desk(network: Network) -> tuple[Peer, Peer, Peer]:
    """Ann and bot share a channel, bob does not."""
    ann, bob = await network.join("ann"), await network.join("bob")
    bot = await network.join("bot", "agent")
    await ann.call("post_to_channel", channel="desk", text="hello")
    for peer in (ann, bob, bot):
        await peer.sync()
    return ann, bob, bot


@pytest.mark.behaviour("P-26", "P-29", "P-37")
async def test_everybody_hears_that_an_agent_works_and_readers_at_what(network: Network) -> None:
    ann, bob, bot = await at_the_desk(network)
    for state in ("thinking", "calling", "idle"):
        await says(bot, "channel_desk", state=state)
    desk = {"thread_id": "channel.desk", "sender": "bot"}
    works = {"sender": "bot", "data": {"state": "working"}}
    rests = {"sender": "bot", "data": {"state": "idle"}}
    assert await activities(bob) == [works, rests]
    assert await activities(ann) == [
        {**desk, "data": {"state": "thinking"}},
        works,
        {**desk, "data": {"state": "calling"}},
        {**desk, "data": {"state": "idle"}},
        rests,
    ]
    assert await activities(bot) == []
    for thread, state in [
        ("channel_desk", "thinking"), ("broadcast", "thinking"),
        ("channel_desk", "idle"), ("broadcast", "idle"), ("broadcast", "idle"),
    ]:  # fmt: skip
        await says(bot, thread, state=state)
    assert await states(bob) == ["working", "idle"], "it rests when it rests in all its threads"
    watcher = await network.join("operator", "service", observe=True)
    await ann.send(op="signal", type="typing", thread_id="channel_desk", data=True, age_s=99)
    assert (await watcher.signal("typing"))["thread_id"] == "channel.desk"
    typing = await bot.signal("typing")
    assert (typing["sender"], "age_s" in typing) == ("ann", False), "only the hub knows its age"
    await bob.sync()
    assert [s for s in bob.signals if s["type"] == "typing"] == []


@pytest.mark.behaviour("P-37")
async def test_who_joins_hears_who_is_at_work_and_for_how_long(in_memory: Networks) -> None:
    clock = HandClock()
    async with in_memory.start(NETWORK, clock=clock) as network:
        _ann, _bob, bot = await at_the_desk(network)
        await says(bot, "channel_desk", state="thinking", turn="bot-m1")
        clock.wall += 12
        await says(bot, "broadcast", state="calling", tool="add")
        clock.wall += 3
        works = {"sender": "bot", "data": {"state": "working"}, "age_s": 15.0}
        calls = {"state": "calling", "tool": "add"}
        broadcast = {"thread_id": "broadcast", "sender": "bot", "data": calls, "age_s": 3.0}
        thinks = {"state": "thinking", "turn": "bot-m1"}
        desk = {"thread_id": "channel.desk", "sender": "bot", "data": thinks, "age_s": 15.0}
        carol = await network.join("carol")
        assert await activities(carol) == [works, broadcast], "she does not read the desk"
        assert await activities(await network.join("ann")) == [works, desk, broadcast]
        watcher = await network.join("operator", "service", observe=True)
        other = await network.join("other", "agent")
        assert await activities(other) == await activities(watcher) == [], "people are told"
        owner = await network.join("carol", observe=True)
        assert await activities(owner) == [works, desk, broadcast]
        await says(bot, "channel_desk", state="idle")
        await says(bot, "broadcast", state="idle")
        assert await activities(await network.join("dora")) == []


@pytest.mark.behaviour("P-37")
async def test_an_agent_that_goes_is_at_rest(network: Network) -> None:
    _ann, bob, bot = await at_the_desk(network)
    await says(bot, "channel_desk", state="thinking")
    again = await network.join("bot", "agent")  # takes the place of the first
    await again.sync()
    assert await states(bob) == ["working", "idle"]
    await says(again, "channel_desk", state="thinking")
    await again.close()
    await network.gone("bot")
    assert await states(bob) == ["working", "idle"]
    assert await activities(await network.join("carol")) == []


@pytest.mark.behaviour("P-37")
async def test_only_what_agents_do_in_threads_is_remembered(network: Network) -> None:
    ann, bob, bot = await at_the_desk(network)
    await says(ann, "broadcast", state="thinking")
    await says(bot, None, state="thinking")
    await says(bot, "dm.ann.bob", state="thinking")  # not its thread
    told = [(each["sender"], each.get("thread_id")) for each in await activities(bob)]
    assert told == [("ann", "broadcast"), ("bot", None)]
    assert await activities(await network.join("carol")) == []


class Silent(Mod):
    """A mod that has nothing to say."""

    name = "silent"


@pytest.mark.behaviour("Y-9")
@pytest.mark.parametrize(
    ("mods", "told"),
    [([Silent(ModConfig())], True), ([Moderation(ModerationConfig())], False)],
)
async def test_text_that_no_mod_has_judged_is_not_passed_on(
    in_memory: Networks, mods: list[Mod], told: bool
) -> None:
    async with in_memory.start(mods=mods) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        await ann.say("bot", "hello")
        for thread in ("dm.ann.bot", None):
            data = {"turn": "bot-m1", "step": 1, "text": "a bad word"}
            await bot.send(op="signal", type="partial", data=data, thread_id=thread)
        await bot.send(op="signal", type="typing", data=True, thread_id="dm.ann.bot")
        await ann.signal("typing")
        assert [s["type"] for s in ann.signals].count("partial") == (2 if told else 0)
