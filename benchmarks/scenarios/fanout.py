"""One message to many connections: a broadcast through the hub against a loop awaiting `send`."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bench import Bench
from benchmarks.figures import Comparison, Figure, Goal, at_least
from benchmarks.hubs import hub
from benchmarks.load import alternate
from benchmarks.servers import start
from benchmarks.sides import hub_fan, relay_fan

__all__ = ["run"]

SHAPES: Sequence[tuple[int, int, Goal | None]] = (
    (10, 64, None),
    (100, 16, at_least(1.0)),
    (1000, 4, at_least(1.0)),
)
"""Receivers, messages in flight, goal of the rate."""


async def run(bench: Bench) -> Sequence[Figure]:
    figures: list[Figure] = []
    for receivers, window, goal in SHAPES:
        comparison = await _compare(bench, receivers, window)
        figures += _figures(comparison, receivers, goal)
    return figures


async def _compare(bench: Bench, receivers: int, window: int) -> Comparison:
    name = f"fan-out to {receivers}"
    bench.say(name)
    participants = ["a0", *(f"b{n}" for n in range(receivers))]
    async with (
        start("benchmarks.relay") as relay,
        hub(bench, participants) as server,
        relay_fan(relay, receivers) as theirs,
        hub_fan(server, receivers) as ours,
    ):
        comparison = Comparison(
            name, *await alternate(ours, theirs, bench.pace(window), bench.rounds)
        )
    bench.note(comparison.load_note())
    return comparison


def _figures(comparison: Comparison, receivers: int, goal: Goal | None) -> list[Figure]:
    return [
        comparison.figure("deliveries", "1/s", lambda i: i.rate * receivers, goal),
        comparison.figure("server CPU per delivery", "us", lambda i: i.cpu_us / receivers),
        comparison.figure("arrived everywhere p50", "ms", lambda i: i.p50_ms),
    ]
