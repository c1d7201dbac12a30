"""The breaker: a thread in which too many turns begin is stopped until a person releases it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hubbub.config.models import NetworkFile
from tests.interaction.peers import Frame, Network, Networks, Peer, config
from tests.interaction.stop_harness import HandClock, beginning, let_in, notices, settled, woken
from tests.interaction.stores import MoodyStore

LIMIT = 3


def three_turns(**more: Any) -> NetworkFile:
    breaker = {"turns": LIMIT, "within": "60s", **more}
    return config(network={"breaker": breaker}, channels={"desk": {"members": "all"}})


async def wake_calc(network: Network, times: int) -> tuple[Peer, Peer, list[Frame]]:
    """A person, an agent, and the agent's wakes in the channel."""
    ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
    for n in range(times):
        await ann.call("post_to_channel", channel="desk", text=f"@calc {n}?")
    return ann, calc, [await woken(calc) for _ in range(times)]


async def begin_error(calc: Peer, wake: Frame) -> str:
    """The code with which the hub refuses to begin a turn."""
    return str((await calc.ask("begin_turn", start=beginning(wake)))["code"])


async def open_breakers(peer: Peer) -> list[Frame]:
    breakers: list[Frame] = (await peer.call("list_breakers"))["breakers"]
    return breakers


@pytest.mark.behaviour("H-27")
async def test_one_turn_over_the_limit_stops_the_thread_until_its_release(
    in_memory: Networks,
) -> None:
    async with in_memory.start(three_turns(), clock=HandClock()) as network:
        ann, calc, wakes = await wake_calc(network, LIMIT + 2)
        bob = await network.join("bob")
        for wake in wakes[:LIMIT]:
            await calc.call("begin_turn", start=beginning(wake))
        assert await open_breakers(ann) == []
        codes = [await begin_error(calc, wake) for wake in wakes[LIMIT:]]
        assert codes == ["stopped", "turn_over"]
        await settled(network)
        (state,) = await open_breakers(ann)
        assert (state["thread_id"], state["turns"]) == ("channel.desk", LIMIT + 1)
        assert state["within_s"] == 60
        ended = (await ann.call("list_turns"))["turns"]
        assert {turn["outcome"] for turn in ended} == {"cancelled"}
        assert {turn["reason"] for turn in ended} == {
            "stopped by the breaker: 4 turns began in this thread"
        }
        (notice,) = await notices(network, ann)
        assert "hubbub resume thread channel.desk" in notice["text_representation"]
        assert notice["mentions"] == ["ann"], "she is waiting for answers"
        assert (notice["content"]["scope"], notice["content"]["agents"]) == ("breaker", ["calc"])
        stopped = (await calc.signal("stop_turns"))["data"]
        assert sorted(stopped["turns"]) == sorted(wake["wake"]["turn"] for wake in wakes)
        assert (stopped["code"], stopped["by"]) == ("stopped", "hub")
        assert (await bob.signal("stops"))["data"]["breakers"][0]["thread_id"] == "channel.desk"
        sent = await ann.call("post_to_channel", channel="desk", text="@calc still there?")
        assert sent["not_woken"] == {"calc": "breaker_open"}
        error = await calc.ask("post_to_channel", channel="desk", text="yes")
        assert error["code"] == "stopped"
        assert not any(event.get("wake") for event in await calc.sync())
        await ann.call("release_breaker", thread="channel_desk")
        assert await open_breakers(ann) == []
        for n in range(LIMIT):  # it counts from zero
            await ann.call("post_to_channel", channel="desk", text=f"@calc {n}?")
            await calc.call("begin_turn", start=beginning(await woken(calc)))
        await ann.call("post_to_channel", channel="desk", text="@calc one more?")
        assert await begin_error(calc, await woken(calc)) == "stopped"
        await settled(network)


@pytest.mark.behaviour("H-27")
async def test_a_turn_counts_once_in_its_thread_and_window(in_memory: Networks) -> None:
    clock = HandClock()
    async with in_memory.start(three_turns(), clock=clock) as network:
        ann, calc, wakes = await wake_calc(network, LIMIT)
        for wake in wakes:
            await calc.call("begin_turn", start=beginning(wake))
        for attempt in range(2, LIMIT + 3):
            begun = await calc.call("begin_turn", start=beginning(wakes[0]))
            assert begun["attempts"] == attempt
        await ann.say("calc", "another thread")
        await calc.call("begin_turn", start=beginning(await woken(calc)))
        clock.wall += 60
        await ann.call("post_to_channel", channel="desk", text="@calc later?")
        await calc.call("begin_turn", start=beginning(await woken(calc)))
        assert await open_breakers(ann) == []


@pytest.mark.behaviour("H-27")
async def test_a_disabled_breaker_stops_nothing(in_memory: Networks) -> None:
    async with in_memory.start(three_turns(enabled=False), clock=HandClock()) as network:
        ann, calc, wakes = await wake_calc(network, LIMIT + 2)
        for wake in wakes:
            await calc.call("begin_turn", start=beginning(wake))
        assert await open_breakers(ann) == []


@pytest.mark.behaviour("H-22")
async def test_only_an_owner_can_release_a_breaker(in_memory: Networks) -> None:
    file = config(
        network={"auth": "tokens", "breaker": {"turns": LIMIT}},
        humans={"ann": {"roles": ["owner"]}, "bob": {}, "eve": {}},
        agents={"calc": {"kind": "python", "class": "x.py:X"}},
    )
    async with in_memory.start(file, clock=HandClock()) as network:
        bob, eve = await let_in(network, "bob"), await let_in(network, "eve")
        calc = await let_in(network, "calc", "agent", turns=True)
        for n in range(LIMIT + 1):
            await bob.say("calc", f"{n}?")
            await calc.ask("begin_turn", start=beginning(await woken(calc)))
        await settled(network)
        assert len(await open_breakers(bob)) == 1
        assert await open_breakers(eve) == []
        release = {"thread": "dm.bob.calc"}
        for peer in (bob, calc):
            assert (await peer.ask("release_breaker", **release))["code"] == "forbidden"
        ann = await let_in(network, "ann")
        await ann.call("release_breaker", **release)
        assert "not_woken" not in await bob.say("calc", "?")


@pytest.mark.behaviour("H-26")
async def test_an_open_breaker_survives_a_restart_until_its_release(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'hub.db'}"
    async with in_memory.start(three_turns(), store=store, clock=HandClock()) as network:
        _ann, calc, wakes = await wake_calc(network, LIMIT + 1)
        for wake in wakes:
            await calc.ask("begin_turn", start=beginning(wake))
        await settled(network)
    async with in_memory.start(three_turns(), store=store, clock=HandClock()) as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
        assert calc.ready["pending"] == []
        (state,) = await open_breakers(ann)
        assert state["turns"] == LIMIT + 1
        await ann.call("release_breaker", thread="channel.desk")
    async with in_memory.start(three_turns(), store=store, clock=HandClock()) as network:
        assert await open_breakers(await network.join("ann")) == []


@pytest.mark.behaviour("H-25")
async def test_a_breaker_that_could_not_be_stored_opens_at_the_next_turn(
    in_memory: Networks, moody: MoodyStore
) -> None:
    async with in_memory.start(three_turns(), store=moody, clock=HandClock()) as network:
        ann, calc, wakes = await wake_calc(network, LIMIT + 1)
        for wake in wakes[:-1]:
            await calc.call("begin_turn", start=beginning(wake))
        moody.failing = 1
        for breakers in (0, 1):
            assert await begin_error(calc, wakes[-1]) == "stopped"
            await settled(network)
            assert len(await open_breakers(ann)) == breakers
