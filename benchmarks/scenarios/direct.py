"""Durable direct messages through the hub, against a relay that only passes frames on.

A message is complete when the receiver has it and, from the hub, the sender has its `result` too,
which comes after the commit. Only then is the next one sent. Receivers at the hub acknowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.bench import Bench
from benchmarks.figures import Comparison, Figure, Goal, at_least, at_most
from benchmarks.hubs import hub, pair_names
from benchmarks.load import alternate
from benchmarks.probes import commit_ms
from benchmarks.servers import start
from benchmarks.sides import hub_pairs, relay_pairs
from benchmarks.stats import middle, percentile

__all__ = ["run"]


@dataclass(frozen=True)
class Shape:
    pairs: int
    window: int
    rate: Goal
    cpu: Goal | None = None

    def __str__(self) -> str:
        return f"direct, {self.pairs} pairs x {self.window}"


SHAPES = (
    Shape(50, 1, at_least(0.5), at_most(1.8)),
    Shape(8, 64, at_least(0.8)),
)


async def run(bench: Bench) -> Sequence[Figure]:
    figures: list[Figure] = []
    for shape in SHAPES:
        comparison = await _compare(bench, str(shape), shape.pairs, shape.window)
        figures += _figures(comparison, shape)
    return [*figures, await _ack_alone(bench)]


async def _compare(bench: Bench, name: str, pairs: int, window: int) -> Comparison:
    bench.say(name)
    async with (
        start("benchmarks.relay") as relay,
        hub(bench, pair_names(pairs)) as server,
        relay_pairs(relay, pairs) as theirs,
        hub_pairs(server, pairs) as ours,
    ):
        comparison = Comparison(
            name, *await alternate(ours, theirs, bench.pace(window), bench.rounds)
        )
    bench.note(comparison.load_note())
    return comparison


def _figures(comparison: Comparison, shape: Shape) -> list[Figure]:
    figure = comparison.figure
    return [
        figure("messages", "1/s", lambda i: i.rate, shape.rate),
        figure("server CPU per message", "us", lambda i: i.cpu_us, shape.cpu),
        figure("round trip p50", "ms", lambda i: i.p50_ms),
        figure("round trip p99", "ms", lambda i: i.p99_ms),
    ]


async def _ack_alone(bench: Bench) -> Figure:
    """One message at a time: the hub's answer against a bare commit plus a bare relay."""
    commits = commit_ms(bench.scratch)
    comparison = await _compare(bench, "direct, 1 pair x 1", 1, 1)
    commit = percentile(commits + commit_ms(bench.scratch), 0.5)
    theirs = middle(comparison.theirs, lambda i: i.p50_ms) + commit
    ours = middle(comparison.ours, lambda i: i.ack_p50_ms or 0.0)
    return Figure(
        "direct, 1 pair x 1",
        "answer p50, against commit + relay",
        "ms",
        ours=ours,
        theirs=theirs,
        ratio=ours / theirs,
        goal=at_most(1.7),
    )
