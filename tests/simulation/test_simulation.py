"""Whatever goes wrong, in whatever order: what README promises holds."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.simulation.guarantees import check
from tests.simulation.histories import history, replay, weather
from tests.simulation.loop import Weather
from tests.simulation.planting import MUTANTS, Mutant, found_by
from tests.simulation.world import World

SEEDS = 100
SAMPLE = (
    "answered-before-the-commit", "direct-messages-to-all", "budget-returned-twice",
    "calls-lost-with-the-connection", "cursor-before-the-effect",
)  # fmt: skip
"""The others are for `make simulate-mutants`."""


@pytest.mark.slow
@pytest.mark.behaviour("R-12")
def test_what_is_promised_holds_in_a_hundred_histories() -> None:
    command = [sys.executable, "-m", "tests.simulation", str(SEEDS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_who_writes_to_a_stopped_agent_is_told_although_the_hub_dies_right_then() -> None:
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


def test_who_asks_an_agent_is_told_that_it_was_stopped_although_it_had_asked_another_one() -> None:
    history = [
        ("wait", 50.0), ("say", "bob", "calc", "t16 ask"), ("wait", 1.0), ("wait", 1.0),
        ("halt", "ann", "calc"), ("steps", 10),
    ]  # fmt: skip
    replay(2945, Weather(network=0.5, disk=0.001), history)


def test_an_agent_whose_turns_were_stopped_as_they_began_goes_on_to_hear_what_is_said() -> None:
    history = [
        ("wait", 10.0), ("cut", "calc", False), ("say", "bob", "calc", "t2 echo"),
        ("shout", "eve", "t4 echo"), ("wait", 2.0), ("halt", "bob", "calc"),
        ("resume", "eve", "calc"), ("wait", 5.0), ("say", "ann", "calc", "t9 echo"),
    ]  # fmt: skip
    replay(3, Weather(network=0.5, thread=0.01, disk=0.3), history)


def test_a_stop_that_the_disk_has_refused_at_first_is_told_once() -> None:
    history = [
        ("wait", 50.0), ("say", "ann", "calc", "t1 pay"), ("say", "ann", "bot", "t3 slow"),
        ("halt", "ann", "calc"), ("say", "eve", "calc", "t7 pay"),
        ("decide", "ann", "approve", "all"), ("steps", 139), ("trouble", "broken", 3),
        ("steps", 166),
    ]  # fmt: skip
    replay(1663, Weather(network=0.001, thread=0.01, disk=0.001), history)


def test_what_waits_behind_a_turn_that_has_ended_is_heard_by_the_agent_s_next_process() -> None:
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


def test_who_comes_when_a_hub_has_sent_all_away_is_sent_away_too() -> None:
    history = [
        ("wait", 10.0), ("trouble", "broken", 1), ("shout", "bob", "t1 echo"), ("wait", 50.0),
        ("shout", "ann", "t9 echo"), ("wait", 50.0), ("restart",), ("steps", 1), ("kill", "bob", 4),
        ("stall", "hub", 30.0),
    ]  # fmt: skip
    replay(1772, Weather(thread=0.01, disk=0.3), history)


def test_who_writes_to_a_stopped_agent_is_told_although_the_disk_refuses_that() -> None:
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


def test_a_history_repeats_itself_step_by_step() -> None:
    def steps() -> list[tuple[str, float]]:
        world, seen = World(7, weather(7)), list[tuple[str, float]]()
        world.loop.trace = lambda process, _: seen.append((process.name, world.loop.time()))
        world.run(history(7), check)
        return seen

    assert steps() == steps()


@pytest.mark.slow
@pytest.mark.behaviour("R-13")
@pytest.mark.parametrize("fault", SAMPLE)
def test_a_planted_fault_is_found(fault: str) -> None:
    assert found_by(MUTANTS / f"{fault}.patch") is not None


def test_every_planted_fault_fits_the_code() -> None:
    for patch in MUTANTS.glob("*.patch"):
        assert Mutant.read(patch).fits(), f"{patch.name}: write it anew"
