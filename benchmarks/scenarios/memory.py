"""What connections weigh that say nothing, and what one costs that never reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from benchmarks.bench import Bench
from benchmarks.figures import Comparison, Figure, at_most
from benchmarks.hubs import hub, pair_names
from benchmarks.lanes import Lane
from benchmarks.load import measure
from benchmarks.servers import Server, start
from benchmarks.sides import Side, hub_lane, hub_pairs, opened_side
from benchmarks.stats import Interval

__all__ = ["run"]

IDLE, WARM_UP = 500, 50
PAIRS = 8
SETTLE_S = 1.0
"""A server's memory is read when it has had nothing to do for so long."""


async def run(bench: Bench) -> Sequence[Figure]:
    bench.say(f"memory of {IDLE} idle connections")
    participants = [f"idle{n}" for n in range(IDLE + WARM_UP)]
    async with start("benchmarks.relay") as relay, opened_side(relay) as side:
        theirs = await _weigh(relay, lambda n: side.open(f"/pair/{n}/a"))
    figures = []
    for what, bare in (("hub: identified", False), ("bare hub: identified", True)):
        async with hub(bench, participants, bare=bare) as server, opened_side(server) as side:
            ours = await _weigh(server, lambda n: side.join(participants[n]))
        figures.append(
            Figure(
                "memory",
                f"per idle connection ({what})",
                "KiB",
                ours=ours,
                theirs=theirs,
                ratio=ours / theirs,
                goal=at_most(20, of="value"),
            )
        )
    return [*figures, *await _deaf(bench)]


async def _weigh(server: Server, connect: Callable[[int], Awaitable[object]]) -> float:
    """KiB for each of `IDLE` connections, after some that warm the server up."""
    for n in range(WARM_UP):
        await connect(n)
    await asyncio.sleep(SETTLE_S)
    before = server.rss_kib()
    for n in range(WARM_UP, WARM_UP + IDLE):
        await connect(n)
    await asyncio.sleep(SETTLE_S)
    return (server.rss_kib() - before) / IDLE


async def _deaf(bench: Bench) -> list[Figure]:
    """Pairs at work beside idle connections and a flooded reader, who reads or does not."""
    bench.say(f"{IDLE} idle connections and one that never reads")
    idle = [f"idle{n}" for n in range(IDLE)]
    participants = [*pair_names(PAIRS), *idle, "flood0", "reading", "flood1", "deaf"]
    async with hub(bench, participants) as server, hub_pairs(server, PAIRS) as pairs:
        for name in idle:
            await pairs.join(name)
        reading = await hub_lane(pairs, "flood0", "reading")
        deaf = await hub_lane(pairs, "flood1", "deaf", deaf=True)
        await _round(bench, pairs, reading)  # caches fill, whoever reads
        theirs, ours = [], []
        for _ in range(bench.rounds):
            theirs.append(await _round(bench, pairs, reading))
            ours.append(await _round(bench, pairs, deaf))
    return _deaf_figures(ours, theirs)


@dataclass(frozen=True)
class _Round:
    interval: Interval
    grown_mib: float
    """By how much the hub's memory grew meanwhile: SQLite's cache grows as the log does."""


async def _round(bench: Bench, side: Side, flood: Lane) -> _Round:
    """A round of the pairs, with `flood` running beside them."""
    before = side.server.rss_kib()
    side.background = [flood]
    interval = await measure(side, bench.pace(1))
    await asyncio.sleep(SETTLE_S)
    return _Round(interval, (side.server.rss_kib() - before) / 1024)


def _deaf_figures(ours: Sequence[_Round], theirs: Sequence[_Round]) -> list[Figure]:
    name = f"{IDLE} idle, one never reads"
    figure = Comparison(name, [r.interval for r in ours], [r.interval for r in theirs]).figure
    grown, grown_anyway = [r.grown_mib for r in ours], [r.grown_mib for r in theirs]
    return [
        Figure(
            name,
            "memory grown beyond what it grows by when all read",
            "MiB",
            ours=sum(grown) - sum(grown_anyway),
            goal=at_most(4, of="value"),
            ours_rounds=grown,
            theirs_rounds=grown_anyway,
        ),
        figure("others' round trip p50, against all read", "ms", lambda i: i.p50_ms),
        figure("others' messages, against all read", "1/s", lambda i: i.rate),
    ]
