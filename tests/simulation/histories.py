"""Histories: generated from a seed, replayed, and shortened to what a failure needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from random import Random
from typing import NamedTuple

from tests.simulation.guarantees import check
from tests.simulation.loop import Weather
from tests.simulation.model import DOES
from tests.simulation.world import AGENTS, LONG, PEOPLE, Op, World

__all__ = ["Failure", "failure", "history", "replay", "shortest", "weather"]

AMONG_PEOPLE = [
    *["person"] * 4, *["edit"] * 2, "delete",
    "desk", "again", "peek", "react", "shout", "reply", "lag",
]  # fmt: skip
WITH_AGENTS = [
    *AMONG_PEOPLE, *["agent"] * 10, *["decide"] * 3, *["stop"] * 2, "resume",
    *["take over"] * 2, "hand back", "speak",
]  # fmt: skip
"""The actions of people, weighted by their number of occurrences."""
MISHAPS = (
    *["kill"] * 3, *["last words"] * 3, *["cut"] * 2, "stall", "disk", "twice", "jump", "stop",
    *["endpoint"] * 3, "backup",
)  # fmt: skip
THREADS = ("dm.ann.bob", "dm.ann.bot", "dm.bot.calc", "dm.bob.eve", "channel.desk")


class Failure(NamedTuple):
    """The kind and message of an error."""

    kind: str
    text: str


def weather(seed: int) -> Weather:
    chance = Random(f"{seed} weather")
    return Weather(
        network=chance.choice([0.0, 0.001, 0.03, 0.5]),
        thread=chance.choice([0.0, 0.01]),
        disk=chance.choice([0.0, 0.001, 0.02, 0.3]),
        model=chance.choice([0.0, 0.1, 1.0]),
    )


def history(seed: int) -> list[Op]:
    """Actions of people and mishaps, from none to very many."""
    chance, tokens = Random(f"{seed} history"), count(1)
    pick = chance.choice
    violence = pick([0.0, 0.1, 0.3])
    tasks = pick([("echo",), DOES, ("pay",), ("pay", "slow"), ("work", "ask", "chat", "pass")])
    actions = pick([AMONG_PEOPLE, WITH_AGENTS, WITH_AGENTS])

    def busy(agent: str) -> list[Op]:
        """Sometimes gives the agent a task to be in the middle of."""
        if chance.random() < 0.5:
            return []
        asked = "say", pick(PEOPLE), agent, f"t{next(tokens)} {pick(tasks)}"
        return [asked, ("wait", pick([0.3, 1.0, 3.0]))]

    def action() -> Op | list[Op]:
        who, agent = pick(PEOPLE), pick(AGENTS)
        match pick(actions):
            case "agent":
                return "say", who, agent, f"t{next(tokens)} {pick(tasks)}"
            case "person":
                to = pick([other for other in PEOPLE if other != who])
                return "say", who, to, f"t{next(tokens)} hello"
            case "desk":
                mention = pick(["", " @bot", " @bot"])
                return "post", pick(["ann", "bob"]), f"t{next(tokens)} {pick(tasks)}{mention}"
            case "lag":
                return "lag", who, pick([0, 2, 3])
            case "shout":
                return "shout", who, f"t{next(tokens)} {pick(tasks)}"
            case "reply":
                return "reply", who, chance.randrange(1, 12), f"t{next(tokens)} {pick(tasks)}"
            case "edit":
                return "edit", who, chance.randrange(1, 12), f"t{next(tokens)} {pick(tasks)}"
            case "delete":
                return "delete", who, chance.randrange(1, 12)
            case "again":
                return "again", chance.randrange(3)
            case "decide":
                how = pick(["approve", "approve", "deny", pick(["approve", "change"])])
                return "decide", who, how, pick(["pending", "all"])
            case "stop":
                return [*busy(agent), ("halt", who, agent)]
            case "resume":
                return "resume", who, agent
            case "take over":
                return [*busy(agent), ("take_over", who, agent, pick([LONG, LONG, 1.0]))]
            case "hand back":
                return "hand_back", who, agent
            case "speak":
                to = pick([*PEOPLE, *AGENTS])
                return "speak", who, agent, to, f"t{next(tokens)} {pick(tasks)}"
            case "peek":
                return "peek", who, pick(THREADS)
            case _:
                return "react", who, chance.randrange(1, 12)

    def mishap() -> Op:
        somebody = pick([*PEOPLE, *(AGENTS if actions is WITH_AGENTS else ())])
        anybody = pick(["hub", somebody])
        match pick(MISHAPS):
            case "kill":
                return "kill", anybody, chance.randrange(1, pick([10, 100, 400]))
            case "last words":
                return "last_words", pick([anybody, pick(AGENTS)]), chance.randrange(1, 20)
            case "cut":
                return "cut", somebody, chance.random() < 0.3
            case "stall":
                return "stall", anybody, pick([0.5, 5.0, 30.0])
            case "disk":
                return "trouble", pick(["full", "broken"]), chance.randrange(1, 4)
            case "twice":
                return "twice", somebody
            case "endpoint":
                mood = pick(["429", "503", "silent", "unreachable", *["breaks off"] * 3])
                return "endpoint_is", mood, chance.randrange(1, 5)
            case "backup":
                return ("backup",)
            case "jump":
                return "jump", pick([-200_000.0, -60.0, 300.0, 200_000.0])
            case _:
                return ("restart",)

    ops: list[Op] = []
    for _ in range(chance.randrange(10, 40)):
        done = mishap() if chance.random() < violence else action()
        ops += done if isinstance(done, list) else [done]
        match pick(["go on", "go on", "steps", "steps", "wait"]):
            case "steps":
                ops.append(("steps", chance.randrange(1, pick([20, 200]))))
            case "wait":
                ops.append(("wait", pick([0.1, 1.0, 10.0, 50.0])))
    return [*ops, *_death_at_work(seed, next(tokens))] if actions is WITH_AGENTS else ops


def _death_at_work(seed: int, token: int) -> list[Op]:
    """Kills an agent in the middle of a task, with its own random numbers."""
    chance = Random(f"{seed} death")
    who, agent = chance.choice(PEOPLE), chance.choice(AGENTS)
    asked = "say", who, agent, f"t{token} {chance.choice(['pay', 'pay', 'echo', 'ask'])}"
    leave: list[Op] = [("wait", 3.0), ("decide", who, "approve", "all")]
    return [asked, *(leave * chance.randrange(2)), ("kill", agent, chance.randrange(1, 100))]


def replay(seed: int, weather: Weather, history: Sequence[Op]) -> World:
    """Runs this history with the random numbers of the seed. Raises `Broken`."""
    world = World(seed, weather)
    world.run(history, check)
    return world


def failure(seed: int, weather: Weather, history: Sequence[Op]) -> Failure | None:
    try:
        replay(seed, weather, history)
    except Exception as error:  # noqa: BLE001  any error is a failure
        return Failure(type(error).__name__, str(error))
    return None


def shortest(seed: int, weather: Weather, history: Sequence[Op]) -> list[Op]:
    """The history without operations that its failure does not need."""
    original = failure(seed, weather, history)
    assert original is not None
    needed, size = list(history), len(history) // 2
    while size:
        start = 0
        while start < len(needed):
            shorter = needed[:start] + needed[start + size :]
            error = failure(seed, weather, shorter)
            if error is not None and error.kind == original.kind:
                needed = shorter
            else:
                start += size
        size //= 2
    return needed
