"""The guarantees of the README hold in random histories with faults."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.simulation.guarantees import check
from tests.simulation.histories import history, replay, weather
from tests.simulation.loop import Weather
from tests.simulation.planting import MUTANTS, Mutant, detected_by
from tests.simulation.world import World

SEEDS = 100
SAMPLE = (
    "answered-before-the-commit", "direct-messages-to-all", "budget-returned-twice",
    "calls-lost-with-the-connection", "cursor-before-the-effect",
)  # fmt: skip
"""`make simulate-mutants` tries all."""


@pytest.mark.slow
@pytest.mark.behaviour("R-12")
def test_the_guarantees_hold_in_a_hundred_random_histories() -> None:
    command = [sys.executable, "-m", "tests.simulation", str(SEEDS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_sender_to_a_stopped_agent_is_notified_despite_a_hub_kill() -> None:
    history = [
        ("wait", 50.0),
        ("cut", "calc", False),
        ("decide", "bob", "deny", "pending"),
        ("halt", "eve", "calc"),
        ("steps", 149),
        ("say", "bob", "calc", "t6 pay"),
        ("kill", "hub", 24),
        ("say", "bob", "eve", "t8 hello"),
    ]
    replay(44, Weather(network=0.001, disk=0.02), history)


def test_a_sender_is_notified_of_a_stop_while_the_agent_awaits_a_colleague() -> None:
    history = [
        ("wait", 50.0), ("say", "bob", "calc", "t16 ask"), ("wait", 1.0), ("wait", 1.0),
        ("halt", "ann", "calc"), ("steps", 10),
    ]  # fmt: skip
    replay(2945, Weather(network=0.5, disk=0.001), history)


def test_an_agent_stopped_as_its_turns_begin_receives_later_messages() -> None:
    history = [
        ("wait", 10.0), ("cut", "calc", False), ("say", "bob", "calc", "t2 echo"),
        ("shout", "eve", "t4 echo"), ("wait", 2.0), ("halt", "bob", "calc"),
        ("resume", "eve", "calc"), ("wait", 5.0), ("say", "ann", "calc", "t9 echo"),
    ]  # fmt: skip
    replay(3, Weather(network=0.5, thread=0.01, disk=0.3), history)


def test_a_stop_whose_first_write_failed_is_announced_once() -> None:
    history = [
        ("wait", 50.0), ("say", "ann", "calc", "t1 pay"), ("say", "ann", "bot", "t3 slow"),
        ("halt", "ann", "calc"), ("say", "eve", "calc", "t7 pay"),
        ("decide", "ann", "approve", "all"), ("steps", 139), ("trouble", "broken", 3),
        ("steps", 166),
    ]  # fmt: skip
    replay(1663, Weather(network=0.001, thread=0.01, disk=0.001), history)


def test_messages_queued_behind_an_ended_turn_reach_the_restarted_agent() -> None:
    history = [
        ("wait", 10.0), ("say", "eve", "bot", "t1 pass"), ("steps", 7),
        ("say", "ann", "bot", "t2 echo"),
        ("wait", 0.1), ("say", "bob", "calc", "t3 chat"), ("steps", 199),
        ("say", "bob", "calc", "t4 fail"),
        ("say", "ann", "bot", "t5 quiet"), ("wait", 50.0), ("cut", "bob", False), ("steps", 91),
        ("restart",), ("post", "ann", "t6 quiet @bot"), ("steps", 179), ("last_words", "bot", 10),
        ("say", "eve", "bot", "t7 fail"), ("steps", 11), ("say", "eve", "bot", "t8 chat"),
        ("wait", 10.0),
    ]  # fmt: skip
    replay(5069, Weather(network=0.0, thread=0.0, disk=0.3), history)


def test_a_client_that_connects_to_a_draining_hub_is_told_to_reconnect() -> None:
    history = [
        ("wait", 10.0), ("trouble", "broken", 1), ("shout", "bob", "t1 echo"), ("wait", 50.0),
        ("shout", "ann", "t9 echo"), ("wait", 50.0), ("restart",), ("steps", 1), ("kill", "bob", 4),
        ("stall", "hub", 30.0),
    ]  # fmt: skip
    replay(1772, Weather(thread=0.01, disk=0.3), history)


def test_a_sender_to_a_stopped_agent_is_notified_despite_a_full_disk() -> None:
    history = [
        ("halt", "bob", "bot"), ("wait", 50.0), ("say", "bob", "ann", "t1 hello"),
        ("say", "bob", "calc", "t4 pay"), ("steps", 9), ("say", "eve", "ann", "t5 hello"),
        ("say", "eve", "bob", "t14 hello"), ("steps", 98), ("say", "bob", "calc", "t15 slow"),
        ("say", "eve", "bot", "t17 pay"), ("wait", 10.0), ("trouble", "full", 3),
        ("say", "eve", "bot", "t18 slow"), ("say", "ann", "calc", "t19 pay"),
        ("say", "eve", "calc", "t20 slow"), ("steps", 16), ("shout", "eve", "t21 pay"),
        ("wait", 1.0),
    ]  # fmt: skip
    replay(640, Weather(network=0.001, disk=0.001), history)


def test_a_seed_always_gives_the_same_steps() -> None:
    def steps() -> list[tuple[str, float]]:
        world, seen = World(7, weather(7)), list[tuple[str, float]]()
        world.loop.trace = lambda process, _: seen.append((process.name, world.loop.time()))
        world.run(history(7), check)
        return seen

    assert steps() == steps()


@pytest.mark.slow
@pytest.mark.behaviour("R-13")
@pytest.mark.parametrize("fault", SAMPLE)
def test_a_planted_fault_is_detected(fault: str) -> None:
    assert detected_by(MUTANTS / f"{fault}.patch") is not None


def test_every_patch_of_a_planted_fault_still_applies() -> None:
    for patch in MUTANTS.glob("*.patch"):
        assert Mutant.read(patch).fits(), f"{patch.name}: rewrite it"
