"""Takeovers: a person sends for an agent for a while, visibly, and the agent pauses."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hubbub.mods.api import Mod, ModConfig, Replace, Verdict
from hubbub.protocol.messages import Draft
from tests.interaction.peers import Frame, Network, Networks, Peer, config, eventually
from tests.interaction.stop_harness import (
    DESK,
    HandClock,
    at_work,
    begin,
    beginning,
    let_in,
    notices,
    settled,
    woken,
)
from tests.interaction.stores import MoodyStore


async def overheard_contents(peer: Peer) -> list[Any]:
    """The contents received as calc's holder so far, except the hub's notices."""
    await peer.sync()
    signals = [signal["data"] for signal in peer.signals if signal["type"] == "overheard"]
    assert all(data["agent"] == "calc" for data in signals)
    messages = [data["message"] for data in signals]
    return [message["content"] for message in messages if message["sender_kind"] != "system"]


async def take_over_calc(network: Network) -> tuple[Peer, Peer, Peer]:
    """A waiting person, an agent, and the person who took it over."""
    ann, calc, _turn = await at_work(network)
    bob = await network.join("bob")
    await bob.call("take_over", agent="calc", minutes=10)
    await calc.signal("stop_turns")
    return ann, calc, bob


@pytest.mark.behaviour("H-29")
async def test_a_takeover_ends_turns_and_notifies_the_waiting_person(in_memory: Networks) -> None:
    async with in_memory.start(clock=HandClock()) as network:
        ann, calc, turn = await at_work(network)
        bob = await network.join("bob")
        await ann.say("calc", "3+3?")
        takeover = await bob.call("take_over", agent="calc", minutes=10)
        assert (takeover["agent"], takeover["by"]) == ("calc", "bob")
        stop = (await calc.signal("stop_turns"))["data"]
        assert stop["turns"] == [turn, "calc-m2"]
        assert (stop["code"], stop["by"]) == ("taken_over", "bob")
        (notice,) = await notices(network, ann)
        assert notice["text_representation"] == "bob took over calc before it answered."
        assert notice["content"]["messages"] == ["m1", "m2"]
        assert (await calc.ask("record_step", turn=turn, step={"n": 1}))["code"] == "turn_over"
        assert (await calc.ask("send_text_message", to="ann", text="4"))["code"] == "taken_over"
        record = await bob.call("read_turn", id=turn)
        assert record["end"]["reason"] == "taken over by bob"
        assert (await ann.call("list_takeovers"))["takeovers"] == [takeover]


@pytest.mark.behaviour("H-28")
async def test_a_message_on_behalf_of_an_agent_names_the_person(networks: Networks) -> None:
    async with networks.start(DESK) as network:
        ann, calc, bob = await take_over_calc(network)
        await ann.sync()
        await calc.sync()
        sent = await bob.say("ann", "it is 4", on_behalf_of="calc")
        root = await bob.call("post_to_channel", channel="desk", text="hello", on_behalf_of="calc")
        await bob.call("reply", message_id=root["id"], text="again", on_behalf_of="calc")
        await bob.call("broadcast_text_message", text="to all", on_behalf_of="calc")
        for peer in (ann, calc):  # the agent receives messages sent in its name as well
            messages = [event["message"] for event in await peer.sync()]
            assert [m["content"] for m in messages] == ["it is 4", "hello", "again", "to all"]
            for message in messages:
                assert (message["sender_id"], message["sender_kind"]) == ("calc", "agent")
                assert message["sent_by"] == "bob"
                assert message["hop"] == 0
        message = await ann.call("read_message", id=sent["id"])
        assert (message["thread_id"], message["sent_by"]) == ("dm.ann.calc", "bob")


@pytest.mark.behaviour("H-28")
async def test_a_message_on_behalf_of_an_agent_wakes_like_a_persons(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        _ann, _calc, bob = await take_over_calc(network)
        bot = await network.join("bot", "agent", turns=True)
        await bob.say("bot", "add this", on_behalf_of="calc")
        event = await woken(bot)
        assert event["wake"]["reply"] == "required"
        await bob.call("post_to_channel", channel="desk", text="@bot and this", on_behalf_of="calc")
        assert (await woken(bot))["wake"]["reply"] == "required"
        turn = event["wake"]["turn"]
        await bot.call("begin_turn", start=beginning(event))
        await bot.call("end_turn", end={"id": turn, "outcome": "finished"})
        await network.quiet()
        await bob.sync()
        signals = [signal["data"] for signal in bob.signals if signal["type"] == "overheard"]
        notice = signals[-1]["message"]["content"]
        assert notice["code"] == "finished", "the holder is notified that no answer comes"


@pytest.mark.behaviour("H-28")
async def test_only_the_holder_can_send_and_only_where_the_agent_could(in_memory: Networks) -> None:
    file = config(channels={"desk": {"members": "all"}, "den": {"members": ["ann", "bob"]}})
    async with in_memory.start(file) as network:
        ann, calc, bob = await take_over_calc(network)
        bot = await network.join("bot", "agent")
        sends: dict[str, dict[str, Any]] = {
            "send_text_message": {"to": "bob", "text": "x"},
            "send_message": {"to": "bob", "content": {"x": 1}},
            "post_to_channel": {"channel": "desk", "text": "x"},
            "broadcast_text_message": {"text": "x"},
            "reply": {"message_id": "m1", "text": "x"},
        }
        for peer in (ann, bot, calc):
            for name, args in sends.items():
                error = await peer.ask(name, **args, on_behalf_of="calc")
                assert error["code"] == "forbidden", (peer, name)
        error = await bob.ask("post_to_channel", channel="den", text="x", on_behalf_of="calc")
        assert error["code"] == "forbidden"
        assert "calc is not a member" in error["message"]
        error = await bob.ask("send_text_message", to="channel.den", text="x", on_behalf_of="calc")
        assert error["code"] == "unknown_thread"
        assert error["message"] == "calc is not in a thread 'channel_den'"


class Forger(Mod):
    """A mod that clears the name of the real sender."""

    name = "forger"

    def on_message(self, draft: Draft) -> Verdict:
        return Replace(draft.replace(content="x", sent_by=None))


@pytest.mark.behaviour("H-28")
async def test_a_mod_cannot_hide_the_real_sender(in_memory: Networks) -> None:
    async with in_memory.start(mods=[Forger(ModConfig(on_failure="reject"))]) as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
        await ann.call("take_over", agent="calc")
        error = await ann.ask("send_text_message", to="ann", text="x", on_behalf_of="calc")
        assert error["code"] == "rejected"
        assert await calc.texts() == []


@pytest.mark.behaviour("H-29", "H-30", "H-31")
async def test_nothing_wakes_an_agent_until_its_takeover_ends(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        ann, calc, bob = await take_over_calc(network)
        takeovers = (await ann.signal("takeovers"))["data"]["takeovers"]
        assert [(takeover["agent"], takeover["by"]) for takeover in takeovers] == [("calc", "bob")]
        eve = await network.join("eve")
        assert (await eve.signal("takeovers"))["data"]["takeovers"] == takeovers
        bot = await network.join("bot", "agent")
        for peer in (ann, bot):
            assert (await peer.say("calc", "?"))["not_woken"] == {"calc": "taken_over"}
            sent = await peer.call("post_to_channel", channel="desk", text="@calc?")
            assert sent["not_woken"] == {"calc": "taken_over"}
        events = await calc.sync()
        assert not any(event.get("wake") for event in events)
        last = events[-1]["message"]["id"]
        start = {"id": f"calc-{last}", "thread_id": "channel.desk", "messages": [last]}
        assert (await calc.ask("begin_turn", start=start))["code"] == "taken_over"
        await bob.call("hand_back", agent="calc")
        assert (await eve.signal("takeovers"))["data"]["takeovers"] == []
        assert (await ann.call("list_takeovers"))["takeovers"] == []
        error = await bob.ask("send_text_message", to="ann", text="x", on_behalf_of="calc")
        assert error["code"] == "forbidden"
        await ann.say("calc", "3+3?")
        turn = await begin(calc)
        await calc.say("ann", "6", cause=turn)
        await bob.call("hand_back", agent="calc")  # no error if there is no takeover
        assert not any(signal["type"] == "takeovers" for signal in calc.signals)


@pytest.mark.behaviour("H-29")
async def test_only_the_holder_receives_and_reads_what_the_agent_can(in_memory: Networks) -> None:
    async with in_memory.start(
        config(channels={"desk": {"members": ["ann", "calc"]}, "den": {"members": ["ann"]}})
    ) as network:
        ann, _calc, bob = await take_over_calc(network)
        eve = await network.join("eve")
        second = await network.join("bob")
        await overheard_contents(bob)
        bob.signals.clear()
        await ann.say("calc", "for calc")
        await ann.call("post_to_channel", channel="desk", text="for the desk")
        await ann.call("post_to_channel", channel="den", text="secret")
        await ann.say("eve", "for eve")
        await bob.say("ann", "by bob", on_behalf_of="calc")
        await network.quiet()
        assert await overheard_contents(bob) == ["for calc", "for the desk"], "not its own message"
        assert (await overheard_contents(second))[-3:] == ["for calc", "for the desk", "by bob"]
        assert await overheard_contents(eve) == []
        page = await bob.call("read_thread", thread="dm.ann.calc")
        assert page["messages"][-1]["content"] == "by bob"
        assert (await bob.call("read_thread", thread="channel.desk"))["messages"]
        assert (await bob.ask("read_thread", thread="channel.den"))["code"] == "unknown_thread"
        assert (await eve.ask("read_thread", thread="dm.ann.calc"))["code"] == "unknown_thread"
        await bob.call("hand_back", agent="calc")
        assert (await bob.ask("read_thread", thread="dm.ann.calc"))["code"] == "unknown_thread"
        bob.signals.clear()
        await ann.say("calc", "private again")
        assert await overheard_contents(bob) == []


# Expiry -------------------------------------------------------------------------------------


@pytest.mark.behaviour("H-30")
async def test_a_takeover_expires_and_can_be_renewed(in_memory: Networks) -> None:
    clock = HandClock()
    async with in_memory.start(clock=clock) as network:
        ann, calc, bob = await take_over_calc(network)
        clock.wall += 599.9
        clock.set(3_000_000)
        takeover = await bob.call("take_over", agent="calc", minutes=1)
        until = datetime.fromisoformat(takeover["until"]).timestamp()
        assert until == pytest.approx(clock.now() + 60), "`until` is in wall-clock time"
        clock.set(-1_000_000)  # setting the clock does not extend the takeover
        clock.wall += 59.9
        await bob.say("ann", "still me", on_behalf_of="calc")
        clock.wall += 0.1
        error = await bob.ask("send_text_message", to="ann", text="x", on_behalf_of="calc")
        assert error["code"] == "forbidden"
        assert (await bob.ask("read_thread", thread="dm.ann.calc"))["code"] == "unknown_thread"
        await ann.say("calc", "3+3?")
        await begin(calc)
        ann.signals.clear()
        network.hub.look()
        assert (await ann.signal("takeovers"))["data"] == {"takeovers": []}
        assert list(network.hub.kernel.state.takeovers) == []


@pytest.mark.behaviour("H-30")
async def test_an_idle_takeover_expires_by_itself(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, _calc, _turn = await at_work(network)
        await ann.call("take_over", agent="calc", minutes=0.0005)
        while (await ann.signal("takeovers"))["data"]["takeovers"]:
            pass  # that it began, unless it expired before that was sent


@pytest.mark.behaviour("H-30")
async def test_a_returning_agent_receives_messages_sent_on_its_behalf(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        ann, calc, turn = await at_work(network)
        await calc.say("ann", "own words", cause=turn)
        await calc.call("post_to_channel", channel="desk", text='own words, "sent_by": bob')
        await calc.call("send_message", to="channel.desk", content={"sent_by": "bob"})
        await calc.close()
        await network.gone("calc")
        bob = await network.join("bob")
        await bob.call("take_over", agent="calc")
        await bob.say("ann", "by bob", on_behalf_of="calc")
        await bob.call("post_to_channel", channel="desk", text="by bob too", on_behalf_of="calc")
        await bob.call("hand_back", agent="calc")
        back = await network.join("calc", "agent", turns=True)
        events: list[Frame] = await back.take(3)
        contents = [event["message"]["content"] for event in events]
        assert contents == ["2+2?", "by bob", "by bob too"]
        await ann.say("calc", "and now?")
        assert (await woken(back))["message"]["content"] == "and now?"


# Permissions --------------------------------------------------------------------------------


@pytest.mark.behaviour("H-28")
async def test_only_one_owner_at_a_time_can_take_over_an_agent(in_memory: Networks) -> None:
    file = config(
        network={"auth": "tokens"},
        humans={"ann": {"roles": ["owner"]}, "cat": {"roles": ["owner"]}, "bob": {}},
        agents={name: {"kind": "python", "class": "x.py:X"} for name in ("calc", "bot")},
    )
    async with in_memory.start(file) as network:
        ann, bob = await let_in(network, "ann"), await let_in(network, "bob")
        cat = await let_in(network, "cat")
        calc = await let_in(network, "calc", "agent", turns=True)
        others = [
            await let_in(network, name, kind)
            for name, kind in (("robot", "service"), ("operator", "service"), ("bot", "agent"))
        ]
        for peer in (bob, calc, *others):
            assert (await peer.ask("take_over", agent="calc"))["code"] == "forbidden"
        for operation in ("take_over", "hand_back"):
            assert (await ann.ask(operation, agent="bob"))["code"] == "unknown_participant"
        await ann.call("take_over", agent="calc")
        error = await cat.ask("take_over", agent="calc")
        assert (error["code"], error["details"]["by"]) == ("taken_over", "ann")
        for peer in (bob, calc):
            assert (await peer.ask("hand_back", agent="calc"))["code"] == "forbidden"
        await cat.call("hand_back", agent="calc")  # an owner can end another owner's takeover
        await cat.call("take_over", agent="calc")


# Failing stores and restarts ----------------------------------------------------------------


@pytest.mark.behaviour("H-25")
async def test_a_takeover_that_cannot_be_stored_changes_nothing(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann, calc, turn = await at_work(network)
        store.failing = 1
        assert (await ann.ask("take_over", agent="calc"))["code"] == "store_unavailable"
        assert (await ann.call("list_takeovers"))["takeovers"] == []
        await calc.call("record_step", turn=turn, step={"n": 1})
        await calc.say("ann", "4", cause=turn)
        await ann.call("take_over", agent="calc")
        store.failing = 1
        assert (await ann.ask("hand_back", agent="calc"))["code"] == "store_unavailable"
        assert (await ann.say("calc", "?"))["not_woken"] == {"calc": "taken_over"}


@pytest.mark.behaviour("H-26")
async def test_a_takeover_survives_a_restart_until_it_expires(
    in_memory: Networks, tmp_path: Path
) -> None:
    store, clock = f"sqlite:{tmp_path / 'hub.db'}", HandClock()
    async with in_memory.start(store=store, clock=clock) as network:
        await take_over_calc(network)
    clock.wall += 300
    async with in_memory.start(store=store, clock=clock) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        calc = await network.join("calc", "agent", turns=True)
        assert calc.ready["pending"] == []
        assert (await ann.signal("takeovers"))["data"]["takeovers"][0]["by"] == "bob"
        await bob.say("ann", "still me", on_behalf_of="calc")
        assert (await ann.say("calc", "?"))["not_woken"] == {"calc": "taken_over"}
    clock.wall += 300
    async with in_memory.start(store=store, clock=clock) as network:
        await eventually(lambda: not network.hub.kernel.state.takeovers)
        await settled(network)
        ann = await network.join("ann")
        assert "not_woken" not in await ann.say("calc", "?")
    clock.wall -= 300  # setting the clock back does not revive an expired takeover
    async with in_memory.start(store=store, clock=clock) as network:
        assert list(network.hub.kernel.state.takeovers) == []
