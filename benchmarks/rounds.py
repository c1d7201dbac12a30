"""Short rounds of everything that the guard looks at: ratios of CPU time to that of the relay."""

from __future__ import annotations

import os
import resource
import sys
import time
from asyncio import create_subprocess_exec, subprocess, timeout
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from statistics import median

from benchmarks.bench import Bench
from benchmarks.hubs import hub, pair_names
from benchmarks.load import Pace, alternate, measure
from benchmarks.scenarios.turn import AGENT_AND_SENDER, taking_turns
from benchmarks.servers import Server, start
from benchmarks.sides import Side, hub_fan, hub_pairs, relay_fan, relay_pairs

__all__ = ["Round", "measured"]

WITHIN_S = 32.0
"""What is not measured by then is left out: the guard shall not keep anybody."""
ROUNDS = 3
WARM_UP_S, MEASURED_S = 0.1, 0.4
WARM_UP_TURNS, TURNS = 5, 12
FAN = 100


class Round:
    """One round of everything: a relay and a `hubbub up`, side by side."""

    def __init__(self, bench: Bench, relay: Server, up: Server, number: int):
        self._bench, self._relay, self._up = bench, relay, up
        self._backwards = number % 2 == 1
        self.measures: Mapping[str, Callable[[], Awaitable[float]]] = {
            "direct, 50 pairs x 1": partial(self._direct, 50, 1, _first(number)),
            "direct, 8 pairs x 64": partial(self._direct, 8, 64, _first(number) + 50),
            f"fan-out to {FAN}": self._fan_out,
            "overhead of a turn": self._turn,
            "start of a command": self._command,
        }

    async def _direct(self, pairs: int, window: int, first: int) -> float:
        """CPU per message; `first` is the number of the first pair."""
        async with (
            relay_pairs(self._relay, pairs, first) as theirs,
            hub_pairs(self._up, pairs, first) as ours,
        ):
            return await self._ratio(ours, theirs, window)

    async def _fan_out(self) -> float:
        """CPU per broadcast."""
        async with relay_fan(self._relay, FAN) as theirs, hub_fan(self._up, FAN) as ours:
            return await self._ratio(ours, theirs, 16)

    async def _ratio(self, ours: Side, theirs: Side, window: int) -> float:
        pace = Pace(window, WARM_UP_S, MEASURED_S)
        (relay,), (up,) = await alternate([theirs, ours], pace, 1, backwards=self._backwards)
        return up.cpu_us / relay.cpu_us

    async def _turn(self) -> float:
        """CPU of an agent's turn besides model and tools, in messages of the relay."""
        agent = taking_turns(self._bench, self._up, "scripted", time.thread_time)
        async with agent as take:
            await take(WARM_UP_TURNS)
            return median(await take(TURNS)) * 1e3 / await self._per_message(0)

    async def _command(self) -> float:
        """CPU of `hubbub send` from its start to its end, in messages of the relay."""
        return await self._send() * 1e6 / await self._per_message(10)

    async def _send(self) -> float:
        address = f"127.0.0.1:{self._up.port}"
        command = ("send", "--as", "me", "--address", address, "#general", "a remark")
        state = {**os.environ, "HUBBUB_STATE_DIR": str(self._bench.scratch)}
        before = _children_s()
        process = await create_subprocess_exec(
            sys.executable, "-m", "hubbub", *command, stdout=subprocess.DEVNULL, env=state
        )
        if code := await process.wait():
            raise RuntimeError(f"hubbub send ended with {code}")
        return _children_s() - before

    async def _per_message(self, first: int) -> float:
        """CPU microseconds of the relay."""
        async with relay_pairs(self._relay, 8, first) as side:
            return (await measure(side, Pace(64, WARM_UP_S, MEASURED_S))).cpu_us


def _first(number: int) -> int:
    """The first of a round's pairs. Each round has its own: those who were here before are sent the
    broadcasts that they have missed."""
    return 100 * (number + 1)


def _children_s() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def measured(bench: Bench) -> dict[str, float]:
    """The ratios by name, as medians of the rounds; why any is missing becomes a note."""
    found: dict[str, list[float]] = defaultdict(list)
    participants = [*AGENT_AND_SENDER, *pair_names(FAN)]
    for number in range(ROUNDS):
        participants += pair_names(58, _first(number))
    try:
        async with timeout(WITHIN_S), hub(bench, participants) as up:
            for number in range(ROUNDS):
                async with start("benchmarks.relay") as relay:
                    for name, ratio in Round(bench, relay, up, number).measures.items():
                        value = await ratio()
                        found[name].append(value)
    except TimeoutError:
        least = min(map(len, found.values()), default=0)
        bench.note(f"the machine is busy: {least} to {least + 1} rounds of {ROUNDS} are measured")
    except Exception as error:  # noqa: BLE001  whatever it is, it is told and stops nobody
        bench.note(f"something could not be measured: {type(error).__name__}: {error}")
    return {name: median(ratios) for name, ratios in found.items()}
