"""What the hub itself tells of what goes on: what has arrived, and which agents are at work."""

from __future__ import annotations

import pytest

from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.moderation import Moderation, ModerationConfig
from tests.interaction.peers import Frame, Network, Networks, Peer, config

DESK = config(channels={"desk": {"members": ["ann", "bot"]}}, humans={"ann": {}})


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cursors are written, and told, as soon as they have moved."""
    monkeypatch.setattr("hubbub.network.cursors.WRITE_AFTER_S", 0.0)
    monkeypatch.setattr("hubbub.network.news.DELIVERED_AFTER_S", 0.0)


class HandClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


async def says(peer: Peer, thread: str | None, **data: object) -> None:
    more = {} if thread is None else {"thread_id": thread}
    await peer.send(op="signal", type="activity", data=data, **more)


async def activities(peer: Peer) -> list[Frame]:
    """All activities that were told by now, without what is the same in all."""
    await peer.sync()
    found = [s for s in peer.signals if s["type"] == "activity"]
    peer.signals = [s for s in peer.signals if s["type"] != "activity"]
    return [{k: v for k, v in s.items() if k not in ("op", "type")} for s in found]


# Delivery -------------------------------------------------------------------------------------


@pytest.mark.behaviour("P-37")
async def test_people_hear_what_has_arrived(network: Network, at_once: None) -> None:
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
async def test_what_arrives_in_quick_succession_is_told_together(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.network.news.DELIVERED_AFTER_S", 3600.0)
    async with in_memory.start() as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent", turns=True)
        for n in range(20):
            sent = await ann.say("bot", str(n))
            await bot.event()
            await bot.ack(sent["seq"])  # with a wake in it: written at once
            await bot.sync()
            await network.quiet()
        assert (await ann.signal("delivered"))["data"]["bot"] >= 1
        await ann.sync()
        assert [s for s in ann.signals if s["type"] == "delivered"] == [], "once in a while"


@pytest.mark.behaviour("P-37")
async def test_where_no_person_is_nothing_is_gathered(network: Network) -> None:
    one = await network.join("one", "agent", turns=True)
    two = await network.join("two", "agent", turns=True)
    sent = await one.say("two", "hello")
    await two.event()
    await two.ack(sent["seq"])
    await two.sync()
    await network.quiet()
    ann = await network.join("ann")
    again = await one.say("two", "hello again")
    await two.event()
    await two.ack(again["seq"])
    assert (await ann.signal("delivered"))["data"] == {"two": again["seq"]}
    assert [s for s in ann.signals if s["type"] == "delivered"] == []


# Work -----------------------------------------------------------------------------------------


async def at_the_desk(network: Network) -> tuple[Peer, Peer, Peer]:
    """Ann and bot share a channel, bob does not."""
    ann, bob = await network.join("ann"), await network.join("bob")
    bot = await network.join("bot", "agent")
    await ann.call("post_to_channel", channel="desk", text="hello")
    for peer in (ann, bob, bot):
        await peer.sync()
    return ann, bob, bot


@pytest.mark.behaviour("P-37")
async def test_everybody_hears_that_an_agent_works_and_readers_at_what(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        ann, bob, bot = await at_the_desk(network)
        for state in ("thinking", "calling", "idle"):
            await says(bot, "channel_desk", state=state)
        await bot.sync()
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


@pytest.mark.behaviour("P-37")
async def test_an_agent_rests_when_it_rests_in_all_its_threads(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        _ann, bob, bot = await at_the_desk(network)
        for thread, state in [
            ("channel_desk", "thinking"), ("broadcast", "thinking"),
            ("channel_desk", "idle"), ("broadcast", "idle"), ("broadcast", "idle"),
        ]:  # fmt: skip
            await says(bot, thread, state=state)
        await bot.sync()
        told = [each["data"]["state"] for each in await activities(bob) if "thread_id" not in each]
        assert told == ["working", "idle"]


@pytest.mark.behaviour("P-37")
async def test_who_joins_hears_who_is_at_work_and_for_how_long(in_memory: Networks) -> None:
    clock = HandClock()
    async with in_memory.start(DESK, clock=clock) as network:
        _ann, _bob, bot = await at_the_desk(network)
        await says(bot, "channel_desk", state="thinking", turn="bot-m1")
        await bot.sync()
        clock.at += 12
        await says(bot, "broadcast", state="calling", tool="add")
        await bot.sync()
        clock.at += 3
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
        await bot.sync()
        assert await activities(await network.join("dora")) == []


@pytest.mark.behaviour("P-37")
async def test_an_agent_that_goes_is_at_rest(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        _ann, bob, bot = await at_the_desk(network)
        await says(bot, "channel_desk", state="thinking")
        await bot.sync()
        again = await network.join("bot", "agent")  # takes the place of the first
        await again.sync()
        assert [each["data"]["state"] for each in await activities(bob)] == ["working", "idle"]
        await says(again, "channel_desk", state="thinking")
        await again.sync()
        await again.close()
        await network.gone("bot")
        assert [each["data"]["state"] for each in await activities(bob)] == ["working", "idle"]
        assert await activities(await network.join("carol")) == []


@pytest.mark.behaviour("P-37")
async def test_only_what_agents_do_in_threads_is_remembered(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    bot = await network.join("bot", "agent")
    await says(ann, "broadcast", state="thinking")
    await says(bot, None, state="thinking")
    await says(bot, "dm.ann.bob", state="thinking")  # not its thread
    for peer in (ann, bot):
        await peer.sync()
    told = await activities(bob)
    assert [(each["sender"], each.get("thread_id")) for each in told] == [
        ("ann", "broadcast"),
        ("bot", None),
    ]
    assert await activities(await network.join("carol")) == []


@pytest.mark.behaviour("P-37", "P-26")
async def test_nobody_can_say_how_old_a_signal_is(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    await bob.send(op="signal", type="typing", thread_id="broadcast", data=True, age_s=99)
    assert "age_s" not in await ann.signal("typing")


@pytest.mark.behaviour("P-26", "P-29")
async def test_observers_hear_the_signals_of_all_threads(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        ann, bob, bot = await at_the_desk(network)
        watcher = await network.join("operator", "service", observe=True)
        await ann.send(op="signal", type="typing", thread_id="channel_desk", data=True)
        assert (await watcher.signal("typing"))["thread_id"] == "channel.desk"
        assert (await bot.signal("typing"))["sender"] == "ann"
        await bob.sync()
        assert [s for s in bob.signals if s["type"] == "typing"] == []


class Silent(Mod):
    """A mod that has nothing to say."""

    name = "silent"


@pytest.mark.behaviour("Y-9")
@pytest.mark.parametrize(
    ("mods", "told"),
    [([], True), ([Silent(ModConfig())], True), ([Moderation(ModerationConfig())], False)],
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
