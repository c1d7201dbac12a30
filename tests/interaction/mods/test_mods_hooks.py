"""Hooks in a running hub: when they are called, and what becomes of those that fail."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from hubbub.mods.api import Mod, ModConfig
from hubbub.protocol.turns import Turn
from tests.interaction.peers import Networks, eventually
from tests.interaction.stop_harness import HandClock, at_work

NETWORKS = Networks(sockets=False)


def settings(**config: JsonValue) -> ModConfig:
    return ModConfig.model_validate(config)


class Witness(Mod):
    """Keeps what it is told."""

    name = "witness"

    def __init__(self) -> None:
        super().__init__(settings())
        self.seen: list[str] = []
        self.turns: list[Turn] = []

    def on_join(self, participant: str) -> None:
        self.seen.append(f"{participant} came")

    def on_leave(self, participant: str) -> None:
        self.seen.append(f"{participant} went")

    def on_turn(self, turn: Turn) -> None:
        self.turns.append(turn)

    def on_timer(self, key: str) -> None:
        self.seen.append(key)


@pytest.mark.behaviour("M-51")
async def test_who_is_there_with_many_sockets_comes_and_goes_once() -> None:
    witness = Witness()
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
async def test_a_mod_is_told_once_of_a_turn_however_it_ends(how: str) -> None:
    witness = Witness()
    async with NETWORKS.start(mods=[witness]) as network:
        ann, calc, turn = await at_work(network)
        if how == "cancelled":
            await ann.call("stop", scope="turn", target=turn)
        else:
            end = {"id": turn, "outcome": "finished"}
            for _ in range(2):
                await calc.call("end_turn", end=end)
        await eventually(lambda: bool(witness.turns))
        await network.quiet()
        [told] = witness.turns
        assert (told.start.id, told.agent, told.end and told.end.outcome) == (turn, "calc", how)


@pytest.mark.behaviour("M-53")
async def test_a_timer_rings_at_its_time_and_not_when_it_was_cancelled() -> None:
    witness, clock = Witness(), HandClock()
    async with NETWORKS.start(mods=[witness], clock=clock):
        now, host = clock.now(), witness.host
        host.at(now + 1e6, "later")
        host.at(now + 1e6, "never")
        host.cancel("never")
        host.at(now + 1e6, "moved")
        host.at(now - 1, "moved")
        await eventually(lambda: witness.seen == ["moved"])
        clock.wall += 2e6
        host.at(now, "first")  # looks at the clock, which has been moved by hand
        await eventually(lambda: witness.seen == ["moved", "first", "later"])
