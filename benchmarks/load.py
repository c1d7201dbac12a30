"""Rounds: load one side for a while, measure the middle of it, and check that nothing was lost."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.lanes import Lane
from benchmarks.sides import Side
from benchmarks.sockets import Alarm
from benchmarks.stats import Interval, percentile

__all__ = ["Pace", "alternate", "measure"]

DRAIN_S = 60.0
"""How long what is in flight may take to arrive when the sending has stopped."""
LOOK_S, LOOKS = 0.1, 2
"""A server is at rest when it has done next to nothing between so many looks."""
AT_REST = 0.05
"""Share of a core that is next to nothing."""


@dataclass(frozen=True)
class Pace:
    """How a round is run: messages in flight per lane, and seconds."""

    window: int
    warm_up_s: float
    measured_s: float


@dataclass(frozen=True)
class _Mark:
    """Where everything stood at one moment."""

    at: float
    own_cpu: float
    done: tuple[int, ...]
    answered: tuple[int, ...]


def _mark(side: Side) -> _Mark:
    return _Mark(
        time.perf_counter(),
        time.process_time(),
        tuple(lane.done for lane in side.lanes),
        tuple(len(lane.answer_times) for lane in side.lanes),
    )


async def measure(side: Side, pace: Pace) -> Interval:
    """One round on one side.

    The server's CPU time is that of the whole round, until it is at rest again: what it puts off
    while it is under load, it does at somebody's cost all the same. Raises `Lost` if anything that
    was sent did not arrive, and what a connection reports.
    """
    gc.collect()
    gc.freeze()
    lanes = [*side.lanes, *side.background]
    used, sent = side.server.cpu_s(), sum(lane.sent for lane in side.lanes)
    for lane in lanes:
        lane.start(pace.window)
    await side.alarm.sleep(pace.warm_up_s)
    before = _mark(side)
    await side.alarm.sleep(pace.measured_s)
    after = _mark(side)
    for lane in lanes:
        lane.stop()
    await _drained(side.alarm, lanes)
    used = await _at_rest(side) - used
    sent = sum(lane.sent for lane in side.lanes) - sent
    return _interval(side.lanes, before, after, used / sent * 1e6)


async def alternate(
    sides: Sequence[Side], pace: Pace, rounds: int, *, backwards: bool = False
) -> list[list[Interval]]:
    """Rounds on the sides in turn, forwards and backwards. The rounds of each side."""
    results: dict[Side, list[Interval]] = {side: [] for side in sides}
    order = sides[::-1] if backwards else sides
    for _ in range(rounds):
        for side in order:
            results[side].append(await measure(side, pace))
        order = order[::-1]
    return list(results.values())


async def _drained(alarm: Alarm, lanes: Sequence[Lane]) -> None:
    deadline = time.monotonic() + DRAIN_S
    while any(lane.in_flight for lane in lanes) and time.monotonic() < deadline:
        await alarm.sleep(0.01)
    for lane in lanes:
        lane.verify()


async def _at_rest(side: Side) -> float:
    """The server's CPU time when it has come to rest."""
    deadline = time.monotonic() + DRAIN_S
    used, quiet = side.server.cpu_s(), 0
    while quiet < LOOKS and time.monotonic() < deadline:
        await side.alarm.sleep(LOOK_S)
        before, used = used, side.server.cpu_s()
        rests = used - before < LOOK_S * AT_REST and side.server.waits()
        quiet = quiet + 1 if rests else 0
    return used


def _interval(lanes: Sequence[Lane], before: _Mark, after: _Mark, cpu_us: float) -> Interval:
    seconds = after.at - before.at
    done = sum(after.done) - sum(before.done)
    trips = _between([lane.round_trips for lane in lanes], before.done, after.done)
    answers = _between([lane.answer_times for lane in lanes], before.answered, after.answered)
    return Interval(
        rate=done / seconds,
        p50_ms=percentile(trips, 0.5) * 1e3,
        p99_ms=percentile(trips, 0.99) * 1e3,
        cpu_us=cpu_us,
        load_busy=(after.own_cpu - before.own_cpu) / seconds,
        ack_p50_ms=percentile(answers, 0.5) * 1e3 if answers else None,
    )


def _between(
    series: Sequence[Sequence[float]], start: Sequence[int], stop: Sequence[int]
) -> list[float]:
    return [v for s, a, b in zip(series, start, stop, strict=True) for v in s[a:b]]
