"""Hooks for joins, turns and timers in a running hub."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import JsonValue

from hubbub.mods.api import Mod, ModConfig
from hubbub.protocol.turns import Turn
from tests.interaction.peers import Networks, soon
from tests.interaction.stop_harness import HandClock, at_work

NETWORKS = Networks(sockets=False)


def settings(**config: JsonValue) -> ModConfig:
    return ModConfig.model_validate(config)


class Recorder(Mod):
    """Records the calls of its hooks."""

    name = "witness"

    def __init__(self) -> None:
        super().__init__(settings())
        self.seen: list[str] = []
        self.turns = asyncio.Queue[Turn]()
        self.timers = asyncio.Queue[str]()

    def on_join(self, participant: str) -> None:
        self.seen.append(f"{participant} came")

    def on_leave(self, participant: str) -> None:
        self.seen.append(f"{participant} went")

    def on_turn(self, turn: Turn) -> None:
        self.turns.put_nowait(turn)

    def on_timer(self, key: str) -> None:
        self.timers.put_nowait(key)


@pytest.mark.behaviour("M-51")
async def test_a_participant_with_several_sockets_joins_and_leaves_once() -> None:
    witness = Recorder()
    async with NETWORKS.start(mods=[witness]) as network:
        first, second = await network.join("ann"), await network.join("ann")
        await network.join("ann", observe=True)
        await network.join("operator", "service")
        await network.join("bot", "agent")
        await network.join("bot", "agent")
        await first.close()
        await second.close()
        await network.gone("ann")
        assert witness.seen == ["ann came", "bot came", "ann went"]


@pytest.mark.behaviour("M-52")
@pytest.mark.parametrize("how", ["finished", "cancelled"])
async def test_a_mod_is_notified_once_per_turn_for_every_outcome(how: str) -> None:
    witness = Recorder()
    async with NETWORKS.start(mods=[witness]) as network:
        ann, calc, turn = await at_work(network)
        if how == "cancelled":
            await ann.call("stop", scope="turn", target=turn)
        else:
            end = {"id": turn, "outcome": "finished"}
            for _ in range(2):
                await calc.call("end_turn", end=end)
        async with soon():
            record = await witness.turns.get()
        await network.quiet()
        assert witness.turns.empty()
        assert record.end is not None
        assert (record.start.id, record.agent, record.end.outcome) == (turn, "calc", how)


@pytest.mark.behaviour("M-53")
async def test_a_timer_fires_at_its_time_unless_cancelled() -> None:
    witness, clock = Recorder(), HandClock()
    async with NETWORKS.start(mods=[witness], clock=clock):
        now, host = clock.now(), witness.host
        host.at(now + 1e6, "later")
        host.at(now + 1e6, "never")
        host.cancel("never")
        host.at(now + 1e6, "moved")
        host.at(now - 1, "moved")
        async with soon():
            assert await witness.timers.get() == "moved"
            clock.wall += 2e6
            host.at(now, "first")  # makes the mod check the clock
            assert [await witness.timers.get() for _ in range(2)] == ["first", "later"]
        assert witness.timers.empty()
