"""The hub's own signals: deliveries, and the activity of agents."""

from __future__ import annotations

import pytest

from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import ModerationConfig
from tests.interaction.peers import Frame, Network, Networks, Peer, config
from tests.interaction.stop_harness import HandClock

NETWORK = config(channels={"desk": {"members": ["ann", "bot"]}}, humans={"ann": {}})


async def signal_activity(peer: Peer, thread: str | None, **data: object) -> None:
    more = {} if thread is None else {"thread_id": thread}
    await peer.send(op="signal", type="activity", data=data, **more)
    await peer.sync()


async def activities(peer: Peer) -> list[Frame]:
    """All activity signals received so far, without `op` and `type`."""
    await peer.sync()
    signals = [s for s in peer.signals if s["type"] == "activity"]
    peer.signals = [s for s in peer.signals if s["type"] != "activity"]
    return [{k: v for k, v in s.items() if k not in ("op", "type")} for s in signals]


async def network_states(peer: Peer) -> list[str]:
    """The states received for agents as a whole, not for one of their threads."""
    return [each["data"]["state"] for each in await activities(peer) if "thread_id" not in each]


@pytest.mark.behaviour("B-3")
async def test_large_signals_cost_as_much_as_messages_of_their_size(in_memory: Networks) -> None:
    limits = {"limits": {"calls_per_second": 0.001, "burst": 10, "unsent": "64MB"}}
    async with in_memory.start(config(network=limits)) as network:
        ann, eve = await network.join("ann"), await network.join("eve")
        for n in range(10):
            await eve.send(op="signal", type="other", data={"n": n, "text": "x" * 200_000})
        for n in range(9):
            await eve.send(op="signal", type="other", data={"n": 10 + n})
        await eve.ask("list_channels")
        await ann.sync()
        relayed = [s["data"]["n"] for s in ann.signals if s["type"] == "other"]
        assert relayed == [0, 1, 2, 10, 11, 12, 13]


# Delivery -------------------------------------------------------------------------------------


@pytest.mark.behaviour("P-37")
async def test_people_are_signalled_when_their_message_is_delivered(
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
    assert [s for s in bot.signals if s["type"] == "delivered"] == [], "sent to people only"


@pytest.mark.behaviour("P-37")
async def test_delivery_signals_are_throttled_and_sent_only_while_a_person_is_connected(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.network.notifications.DELIVERED_AFTER_S", 3600.0)
    one, bot = await network.join("one", "agent"), await network.join("bot", "agent", turns=True)

    async def deliver() -> int:
        sent = await one.say("bot", "hello")
        await bot.event()
        await bot.ack(sent["seq"])  # acknowledges a wake, so it is written immediately
        await bot.sync()
        await network.quiet()
        return int(sent["seq"])

    await deliver()
    ann = await network.join("ann")
    second = await deliver()
    assert (await ann.signal("delivered"))["data"] == {"bot": second}, "nothing from before"
    for _ in range(5):
        await deliver()
    await ann.sync()
    assert [s for s in ann.signals if s["type"] == "delivered"] == [], "throttled"


# Activity -------------------------------------------------------------------------------------


async def join_desk(network: Network) -> tuple[Peer, Peer, Peer]:
    """Ann and bot share the channel; bob is not in it."""
    ann, bob = await network.join("ann"), await network.join("bob")
    bot = await network.join("bot", "agent")
    await ann.call("post_to_channel", channel="desk", text="hello")
    for peer in (ann, bob, bot):
        await peer.sync()
    return ann, bob, bot


@pytest.mark.behaviour("P-26", "P-29", "P-37")
async def test_only_readers_see_in_which_thread_an_agent_is_working(network: Network) -> None:
    ann, bob, bot = await join_desk(network)
    for state in ("thinking", "calling", "idle"):
        await signal_activity(bot, "channel_desk", state=state)
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
        await signal_activity(bot, thread, state=state)
    assert await network_states(bob) == ["working", "idle"], "idle once all its threads are"
    await signal_activity(bot, "channel_desk", state="thinking")
    await signal_activity(bot, "channel_desk", **{"state": "waiting", "for": "approval"})
    assert await network_states(bob) == ["working", "idle"], "one that waits for him does not work"
    await signal_activity(bot, "channel_desk", state="thinking")
    await signal_activity(bot, "channel_desk", state="idle")
    assert await network_states(bob) == ["working", "idle"]
    watcher = await network.join("operator", "service", observe=True)
    await ann.send(op="signal", type="typing", thread_id="channel_desk", data=True, age_s=99)
    assert (await watcher.signal("typing"))["thread_id"] == "channel.desk"
    typing = await bot.signal("typing")
    assert (typing["sender"], "age_s" in typing) == ("ann", False), "a client cannot set the age"
    await bob.sync()
    assert [s for s in bob.signals if s["type"] == "typing"] == []


@pytest.mark.behaviour("P-37")
async def test_a_person_who_joins_receives_current_activities_and_ages(in_memory: Networks) -> None:
    clock = HandClock()
    async with in_memory.start(NETWORK, clock=clock) as network:
        _ann, _bob, bot = await join_desk(network)
        await signal_activity(bot, "channel_desk", state="thinking", turn="bot-m1")
        clock.wall += 12
        await signal_activity(bot, "broadcast", state="calling", tool="add")
        clock.wall += 3
        works = {"sender": "bot", "data": {"state": "working"}, "age_s": 15.0}
        calls = {"state": "calling", "tool": "add"}
        broadcast = {"thread_id": "broadcast", "sender": "bot", "data": calls, "age_s": 3.0}
        thinks = {"state": "thinking", "turn": "bot-m1"}
        desk = {"thread_id": "channel.desk", "sender": "bot", "data": thinks, "age_s": 15.0}
        carol = await network.join("carol")
        assert await activities(carol) == [works, broadcast], "carol cannot read the desk"
        assert await activities(await network.join("ann")) == [works, desk, broadcast]
        watcher = await network.join("operator", "service", observe=True)
        other = await network.join("other", "agent")
        assert await activities(other) == await activities(watcher) == [], "for people only"
        owner = await network.join("carol", observe=True)
        assert await activities(owner) == [works, desk, broadcast]
        await signal_activity(bot, "channel_desk", state="idle")
        await signal_activity(bot, "broadcast", state="idle")
        assert await activities(await network.join("dora")) == []


@pytest.mark.behaviour("P-37")
async def test_an_agent_that_disconnects_becomes_idle(network: Network) -> None:
    _ann, bob, bot = await join_desk(network)
    await signal_activity(bot, "channel_desk", state="thinking")
    again = await network.join("bot", "agent")  # replaces the first socket
    await again.sync()
    assert await network_states(bob) == ["working", "idle"]
    await signal_activity(again, "channel_desk", state="thinking")
    await again.close()
    await network.gone("bot")
    assert await network_states(bob) == ["working", "idle"]
    assert await activities(await network.join("carol")) == []


@pytest.mark.behaviour("P-37")
async def test_only_activities_of_agents_in_their_threads_are_replayed(network: Network) -> None:
    ann, bob, bot = await join_desk(network)
    await signal_activity(ann, "broadcast", state="thinking")
    await signal_activity(bot, None, state="thinking")
    await signal_activity(bot, "dm.ann.bob", state="thinking")  # not its thread
    received = [(each["sender"], each.get("thread_id")) for each in await activities(bob)]
    assert received == [("ann", "broadcast"), ("bot", None)]
    assert await activities(await network.join("carol")) == []


class Silent(Mod):
    """A mod without hooks."""

    name = "silent"


@pytest.mark.behaviour("Y-9")
@pytest.mark.parametrize(
    ("mods", "partials"), [([Silent(ModConfig())], 2), ([Moderation(ModerationConfig())], 0)]
)
async def test_partial_text_is_withheld_while_a_mod_checks_messages(
    in_memory: Networks, mods: list[Mod], partials: int
) -> None:
    async with in_memory.start(mods=mods) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        await ann.say("bot", "hello")
        for thread in ("dm.ann.bot", None):
            data = {"turn": "bot-m1", "step": 1, "text": "a bad word"}
            await bot.send(op="signal", type="partial", data=data, thread_id=thread)
        await bot.send(op="signal", type="typing", data=True, thread_id="dm.ann.bot")
        await ann.signal("typing")
        assert [s["type"] for s in ann.signals].count("partial") == partials
