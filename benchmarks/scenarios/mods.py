"""What mods cost: hubs with 0, 1, 5 and 10 that do nothing, in turn, and with each built-in one.

In this process the hub is asked without sockets, so that little else is in the way; its store is in
memory, and what it costs is on both sides. Each message is one of a person that wakes an agent: all
hooks around a message are called. Through the socket it is the `hubbub up` of `direct`. Built-in
mods have the settings that they have by default.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import TypeVar

from benchmarks import idle
from benchmarks.bench import Bench
from benchmarks.figures import Figure, at_most
from benchmarks.hubs import hub, pair_names
from benchmarks.load import measure
from benchmarks.sides import Side, hub_pairs
from hubbub.config.models import NetworkConfig, NetworkFile
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.loader import BUILT_IN, load_mods
from hubbub.network.log import Entry
from hubbub.protocol.messages import Draft
from hubbub.testing.network import LocalNetwork

__all__ = ["run"]

NUMBERS = (1, 5, 10)
"""Of mods; each is compared with the hub that has none."""
MOST_US = 5.0
PAIRS, WINDOW = 8, 64
BATCH = 64
"""Messages at once, without sockets."""
_TEXT = "the quick brown fox jumps over the lazy dog and writes a message about it; " * 2
T = TypeVar("T")
Rounds = Mapping[T, list[float]]
"""By number of mods, or by name, CPU microseconds per message of each round."""


async def run(bench: Bench) -> Sequence[Figure]:
    figures = []
    bench.say("mods, in process")
    found = await _in_process(bench, (0, *NUMBERS), _idle)
    for number in NUMBERS:
        figures.append(_figure("in process", found, number, goal=True))
    bench.say(f"mods, {PAIRS} pairs x {WINDOW}")
    found = await _through_sockets(bench)
    for number in NUMBERS:
        # What one mod adds is less than what two rounds differ by.
        figures.append(_figure("through the socket", found, number, goal=number == NUMBERS[-1]))
    bench.say("built-in mods, in process")
    named = await _in_process(bench, ("", *sorted(BUILT_IN)), _built_in)
    return [*figures, *(_row(named, name) for name in sorted(BUILT_IN))]


def _figure(where: str, found: Rounds[int], number: int, *, goal: bool) -> Figure:
    """What each of so many mods adds."""
    added = [value / number for value in _added(found, number, 0)]
    return Figure(
        f"mods that do nothing, {where}",
        f"CPU per message and mod, of {number}",
        "us",
        ours=median(added),
        goal=at_most(MOST_US, of="value") if goal else None,
        ours_rounds=added,
    )


def _row(found: Rounds[str], name: str) -> Figure:
    """What a built-in mod adds."""
    added = _added(found, name, "")
    return Figure(
        "built-in mods, by default", f"{name}: CPU per message", "us", median(added),
        ours_rounds=added,
    )  # fmt: skip


def _added(found: Rounds[T], which: T, without: T) -> list[float]:
    return [ours - theirs for ours, theirs in zip(found[which], found[without], strict=True)]


def _idle(number: int) -> Sequence[Mod]:
    return [kind(ModConfig()) for kind in idle.KINDS[:number]]


def _built_in(name: str) -> Sequence[Mod]:
    return load_mods([name] if name else [])


# In process -------------------------------------------------------------------------------------


class _Asker:
    """Counts what has been answered."""

    def __init__(self) -> None:
        self.answered = 0

    def sent(self, ref: str, entry: Entry, *, duplicate: bool = False) -> None:
        self.answered += 1

    def repeated(self, ref: str, value: bytes) -> None:
        raise RuntimeError("nothing is sent twice")

    def failed(self, ref: str, error: Exception) -> None:
        raise error


async def _in_process(
    bench: Bench, which: Sequence[T], mods: Callable[[T], Sequence[Mod]]
) -> Rounds[T]:
    rounds, messages = (6, 2_000) if bench.quick else (12, 4_000)
    found: dict[T, list[float]] = {each: [] for each in which}
    async with AsyncExitStack() as stack:
        networks = {e: await stack.enter_async_context(_network(mods(e))) for e in which}
        for network in networks.values():
            await network.join("ann", "human")
            await (await network.join("bot", "agent")).__aexit__(None, None, None)
            await _round(network, messages // 4)
        for n in range(rounds):
            for each in (which, which[::-1])[n % 2]:
                found[each].append(await _round(networks[each], messages))
    return found


def _network(mods: Sequence[Mod]) -> LocalNetwork:
    return LocalNetwork(NetworkFile(network=NetworkConfig(auth="open")), mods=mods)


async def _round(network: LocalNetwork, messages: int) -> float:
    """CPU microseconds per message of this process, the store's thread among it."""
    asker = _Asker()
    writes, log = network.hub.kernel.writes, network.hub.kernel.log
    gc.collect()
    gc.disable()
    started = time.process_time()
    for n in range(messages):
        text = f"{_TEXT}{n}"
        draft = Draft("ann", "human", "dm.ann.bot", "direct", text, recipients=("bot",))
        assert writes.submit(Entry(draft, asker)) is None
        if n % BATCH == 0:
            await log.settle()
    await log.settle()
    used = time.process_time() - started
    gc.enable()
    assert asker.answered == messages
    await asyncio.sleep(0)
    return used / messages * 1e6


# Through the socket -----------------------------------------------------------------------------


async def _through_sockets(bench: Bench) -> Rounds[int]:
    found: dict[int, list[float]] = {number: [] for number in (0, *NUMBERS)}
    async with AsyncExitStack() as stack:
        sides: dict[int, Side] = {}
        for number in found:
            mods = [f"{Path(idle.__file__)}:{kind.__name__}" for kind in idle.KINDS[:number]]
            server = await stack.enter_async_context(hub(bench, pair_names(PAIRS), mods=mods))
            sides[number] = await stack.enter_async_context(hub_pairs(server, PAIRS))
        for n in range(2 * bench.rounds):
            for number in (list(found), list(found)[::-1])[n % 2]:
                interval = await measure(sides[number], bench.pace(WINDOW))
                found[number].append(interval.cpu_us)
    return found
