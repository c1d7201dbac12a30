"""Hooks in a running hub: when they are called, and what becomes of those that fail."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from pydantic import JsonValue

from hubbub.errors import OperationError, UserError
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.protocol.messages import Draft
from hubbub.protocol.turns import Turn
from tests.interaction.peers import Network, Networks, eventually
from tests.interaction.stop_rig import HandClock, at_work

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


class Judge(Mod):
    """Does to messages of people what a test says."""

    name = "judge"

    def __init__(self, judge: Callable[[Draft], Verdict], **config: JsonValue):
        super().__init__(settings(**config))
        self.judge = judge

    def on_message(self, draft: Draft) -> Verdict:
        return self.judge(draft) if draft.sender_kind == "human" else PASS


def adding(text: str) -> Callable[[Draft], Verdict]:
    return lambda draft: Replace(replace(draft, content=f"{draft.content}{text}"))


def no_threads_of_hooks() -> bool:
    return all(thread.name != "hooks" for thread in threading.enumerate())


@pytest.mark.behaviour("M-50")
async def test_mods_judge_in_the_order_of_the_list_until_one_rejects() -> None:
    mods = [Judge(adding("1")), Judge(adding("2"))]
    async with NETWORKS.start(mods=mods) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.say("bob", "0")
        assert (await bob.event())["message"]["content"] == "012"
        mods[0].judge = lambda draft: Reject("not today")
        with pytest.raises(OperationError, match="judge: not today"):
            await ann.say("bob", "0")


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
        clock.time += 2e6
        host.at(now, "first")  # looks at the clock, which has been moved by hand
        await eventually(lambda: witness.seen == ["moved", "first", "later"])


def hanging(draft: Draft) -> Verdict:
    while True:
        pass


def sleeping(draft: Draft) -> Verdict:
    time.sleep(60)
    return PASS


def raising(error: BaseException) -> Callable[[Draft], Verdict]:
    def judge(draft: Draft) -> Verdict:
        raise error

    return judge


def rubbish(draft: Draft) -> Verdict:
    return None  # type: ignore[return-value]  # what nobody has type-checked


BROKEN = [
    hanging,
    sleeping,
    rubbish,
    *map(raising, [ValueError(), KeyboardInterrupt(), SystemExit(), asyncio.CancelledError()]),
]


@pytest.mark.behaviour("M-54")
@pytest.mark.parametrize("on_failure", ["pass", "reject"])
@pytest.mark.parametrize("judge", BROKEN)
async def test_a_broken_mod_harms_one_message_at_most_and_is_told_of_once(
    judge: Callable[[Draft], Verdict], on_failure: str
) -> None:
    broken = Judge(judge, on_failure=on_failure, time_limit=0.01)
    async with NETWORKS.start(mods=[broken, Judge(adding("!"))]) as network:
        ann = await network.join("ann")
        for _ in range(2):
            answer = await ann.ask("broadcast_text_message", text="hello")
            assert answer["op"] == ("result" if on_failure == "pass" else "error")
        assert network.hub.metrics.mod_failures["judge"] == 2
        assert len(await told_of_mods(network)) == 1
    assert no_threads_of_hooks()


async def told_of_mods(network: Network) -> list[str]:
    """What the hub has told the first to join of mods that failed."""
    ann, hooks = network.peers[0], list[str]()
    while not hooks:
        message = (await ann.event())["message"]
        hooks += [message["content"]["hook"]] if message["sender_id"] == "hub" else []
    await network.quiet()
    messages = [event["message"] for event in await ann.sync()]
    return hooks + [m["content"]["hook"] for m in messages if m["sender_id"] == "hub"]


class Unwilling(Mod):
    name = "unwilling"

    async def start(self) -> None:
        raise SystemExit(3)


@pytest.mark.behaviour("M-55")
async def test_a_mod_that_cannot_start_is_one_sentence_and_leaves_nothing_open() -> None:
    with pytest.raises(UserError, match="the mod unwilling cannot start: SystemExit: 3"):
        async with NETWORKS.start(mods=[Witness(), Unwilling(settings())]):
            pass
    assert no_threads_of_hooks()


@pytest.mark.behaviour("M-56")
async def test_two_hubs_of_a_process_hold_their_mods_to_their_limits_in_any_order() -> None:
    async with NETWORKS.start(mods=[Judge(hanging, time_limit=0.01)]) as first:
        async with NETWORKS.start(mods=[Judge(hanging, time_limit=0.01)]) as second:
            await (await second.join("ann")).call("broadcast_text_message", text="hello")
        await (await first.join("ann")).call("broadcast_text_message", text="hello")
    assert no_threads_of_hooks()
