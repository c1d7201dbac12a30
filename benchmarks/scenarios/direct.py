"""Durable direct messages through `hubbub up`, against a relay that only passes frames on.

A message is complete when the receiver has it and, from the hub, the sender has its `result` too,
which comes after the commit. Only then is the next one sent. Receivers at the hub acknowledge.
The bare hub is measured beside them: what the command adds to it is a figure of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Goal, ThreeSides, at_least, at_most
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
    cpu: Goal

    def __str__(self) -> str:
        return f"direct, {self.pairs} pairs x {self.window}"


SHAPES = (
    Shape(50, 1, at_least(0.5), at_most(1.8)),
    Shape(8, 64, at_least(0.8), at_most(1.8)),
)


async def run(bench: Bench) -> Sequence[Figure]:
    figures: list[Figure] = []
    for shape in SHAPES:
        sides = await _measured(bench, str(shape), shape.pairs, shape.window)
        figures += _figures(sides, shape)
    return [*figures, await _ack_alone(bench)]


async def _measured(bench: Bench, name: str, pairs: int, window: int) -> ThreeSides:
    bench.say(name)
    async with (
        start("benchmarks.relay") as relay,
        hub(bench, pair_names(pairs)) as up,
        hub(bench, pair_names(pairs), bare=True) as bare,
        relay_pairs(relay, pairs) as theirs,
        hub_pairs(up, pairs) as ours,
        hub_pairs(bare, pairs) as core,
    ):
        rounds = await alternate([theirs, core, ours], bench.pace(window), bench.rounds)
    sides = ThreeSides(name, *rounds)
    bench.note(sides.against_relay.load_note())
    return sides


def _figures(sides: ThreeSides, shape: Shape) -> list[Figure]:
    figure = sides.against_relay.figure
    return [
        figure("messages", "1/s", lambda i: i.rate, shape.rate),
        figure("server CPU per message", "us", lambda i: i.cpu_us, shape.cpu),
        *sides.cpu("message"),
        figure("round trip p50", "ms", lambda i: i.p50_ms),
        figure("round trip p99", "ms", lambda i: i.p99_ms),
    ]


async def _ack_alone(bench: Bench) -> Figure:
    """One message at a time: the hub's answer against a bare commit plus a bare relay."""
    commits = commit_ms(bench.scratch)
    sides = await _measured(bench, "direct, 1 pair x 1", 1, 1)
    commit = percentile(commits + commit_ms(bench.scratch), 0.5)
    theirs = middle(sides.relay, lambda i: i.p50_ms) + commit
    ours = middle(sides.up, lambda i: i.ack_p50_ms or 0.0)
    return Figure(
        "direct, 1 pair x 1",
        "answer p50, against commit + relay",
        "ms",
        ours=ours,
        theirs=theirs,
        ratio=ours / theirs,
        goal=at_most(1.7),
    )
