"""One message to many: a broadcast through `hubbub up` against a loop that awaits `send`."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Goal, ThreeSides, at_least
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
        sides = await _measured(bench, receivers, window)
        figures += _figures(sides, receivers, goal)
    return figures


async def _measured(bench: Bench, receivers: int, window: int) -> ThreeSides:
    name = f"fan-out to {receivers}"
    bench.say(name)
    participants = ["a0", *(f"b{n}" for n in range(receivers))]
    async with (
        start("benchmarks.relay") as relay,
        hub(bench, participants) as up,
        hub(bench, participants, bare=True) as bare,
        relay_fan(relay, receivers) as theirs,
        hub_fan(up, receivers) as ours,
        hub_fan(bare, receivers) as core,
    ):
        rounds = await alternate([theirs, core, ours], bench.pace(window), bench.rounds)
    sides = ThreeSides(name, *rounds)
    bench.note(sides.against_relay.load_note())
    return sides


def _figures(sides: ThreeSides, receivers: int, goal: Goal | None) -> list[Figure]:
    figure = sides.against_relay.figure
    return [
        figure("deliveries", "1/s", lambda i: i.rate * receivers, goal),
        figure("server CPU per delivery", "us", lambda i: i.cpu_us / receivers),
        *sides.cpu("delivery", receivers),
        figure("arrived everywhere p50", "ms", lambda i: i.p50_ms),
    ]
