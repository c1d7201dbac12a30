"""What a message costs when the log is long, against the same `hubbub up` with a short one."""

from __future__ import annotations

from collections.abc import Sequence
from shutil import copyfile
from uuid import uuid4

from benchmarks.bench import Bench
from benchmarks.figures import Comparison, Figure, at_most
from benchmarks.hubs import filled_store, hub, pair_names
from benchmarks.load import Pace, alternate
from benchmarks.sides import hub_pairs
from benchmarks.stats import Interval

__all__ = ["LONG", "QUICK_LONG", "SHORT", "long_log", "run"]

SHORT, LONG, QUICK_LONG = 10_000, 1_000_000, 100_000
SHAPES = ((50, 1), (8, 64))


def long_log(bench: Bench) -> int:
    """Messages in the long log of this run."""
    return QUICK_LONG if bench.quick else LONG


async def run(bench: Bench) -> Sequence[Figure]:
    figures: list[Figure] = []
    for pairs, window in SHAPES:
        name = f"{long_log(bench):,} messages against {SHORT:,}, {pairs} pairs x {window}"
        bench.say(name)
        up = (await _compare(bench, name, pairs, window)).figure
        bare = (await _compare(bench, name, pairs, window, bare=True)).figure
        figures += [
            up("server CPU per message", "us", lambda i: i.cpu_us, at_most(1.2)),
            bare("the same, bare hub", "us", lambda i: i.cpu_us, at_most(1.2)),
            up("messages", "1/s", lambda i: i.rate),
            up("round trip p99", "ms", lambda i: i.p99_ms),
        ]
    return figures


async def _compare(
    bench: Bench, name: str, pairs: int, window: int, *, bare: bool = False
) -> Comparison:
    ours: list[Interval] = []
    theirs: list[Interval] = []
    for n in range(bench.rounds):
        long, short = await _round(bench, pairs, window, n, bare)
        ours += long
        theirs += short
    return Comparison(name, ours, theirs)


async def _round(
    bench: Bench, pairs: int, window: int, n: int, bare: bool
) -> Sequence[list[Interval]]:
    """Fresh hubs, and a fresh copy of the short log: within seconds it would be a long one.

    The pairs are others in every round and shape: those before left events unacknowledged.
    """
    long = await filled_store(bench, long_log(bench))
    short = bench.scratch / f"short-{uuid4().hex[:8]}.db"
    copyfile(await filled_store(bench, SHORT), short)
    first = pairs * 1000 + (2 * n + bare) * pairs
    names = pair_names(pairs, first)
    async with (
        hub(bench, names, short, bare=bare) as short_hub,
        hub(bench, names, long, bare=bare) as long_hub,
        hub_pairs(short_hub, pairs, first) as theirs,
        hub_pairs(long_hub, pairs, first) as ours,
    ):
        pace = Pace(window, 0.5, 1.0)
        return await alternate([ours, theirs], pace, 1, backwards=n % 2 == 0)
