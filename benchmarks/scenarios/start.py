"""How long until a hub accepts its first message, and until the client package is imported."""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Goal, at_most
from benchmarks.fill import admit
from benchmarks.hubs import filled_store, start_hub
from benchmarks.messages import direct
from benchmarks.scenarios.log_size import long_log
from benchmarks.sides import Side, token_of
from hubbub.network.store import open_store

__all__ = ["run"]

STARTS, IMPORTS = 5, 7
_IMPORT = (
    "import time; t = time.perf_counter(); import hubbub.client; print(time.perf_counter() - t)"
)


async def run(bench: Bench) -> Sequence[Figure]:
    bench.say("start of the hub, and imports")
    empty = bench.scratch / "empty.db"
    long = await filled_store(bench, long_log(bench))
    return [
        await _start("`hubbub up`, empty log", empty, at_most(0.5, of="value")),
        await _start(f"`hubbub up`, log of {long_log(bench):,}", long, at_most(1.0, of="value")),
        await _start("bare hub, empty log", empty, at_most(0.5, of="value"), bare=True),
        await _import_time(),
    ]


async def _start(name: str, store: Path, goal: Goal, *, bare: bool = False) -> Figure:
    opened = open_store(f"sqlite:{store}")
    await opened.open()
    await admit(opened, [(name, token_of(name)) for name in ("a0", "b0")])
    await opened.close()
    rounds = [await _first_message(store, bare) for _ in range(STARTS)]
    return Figure(
        "start",
        f"process start to first accepted message, {name}",
        "s",
        ours=median(rounds),
        goal=goal,
        ours_rounds=rounds,
    )


async def _first_message(store: Path, bare: bool) -> float:
    started = time.perf_counter()
    async with start_hub(store, bare=bare) as server:
        side = Side(server)
        await side.join("b0")
        sender = await side.join("a0")
        sender.write(direct("b0", side.run).frame(0))
        while (answer := await sender.next_frame())["op"] != "result":
            if answer["op"] == "error":
                raise RuntimeError(f"the first message was refused: {answer}")
        took = time.perf_counter() - started
        side.close()
    return took


async def _import_time() -> Figure:
    rounds = []
    for _ in range(IMPORTS):
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", _IMPORT, stdout=PIPE)
        output, _ = await process.communicate()
        rounds.append(float(output) * 1e3)
    return Figure(
        "start",
        "import hubbub.client",
        "ms",
        ours=median(rounds),
        goal=at_most(150, of="value"),
        ours_rounds=rounds,
    )
