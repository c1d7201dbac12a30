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
    server_cpu: float
    own_cpu: float
    done: tuple[int, ...]
    answered: tuple[int, ...]


def _mark(side: Side) -> _Mark:
    return _Mark(
        time.perf_counter(),
        side.server.cpu_s(),
        time.process_time(),
        tuple(lane.done for lane in side.lanes),
        tuple(len(lane.answer_times) for lane in side.lanes),
    )


async def measure(side: Side, pace: Pace) -> Interval:
    """One round on one side.

    Raises `Lost` if anything that was sent did not arrive, and what a connection reports.
    """
    gc.collect()
    gc.freeze()
    lanes = [*side.lanes, *side.background]
    for lane in lanes:
        lane.start(pace.window)
    await side.alarm.sleep(pace.warm_up_s)
    before = _mark(side)
    await side.alarm.sleep(pace.measured_s)
    after = _mark(side)
    for lane in lanes:
        lane.stop()
    await _drained(side.alarm, lanes)
    return _interval(side.lanes, before, after)


async def alternate(
    ours: Side, theirs: Side, pace: Pace, rounds: int, *, theirs_first: bool = True
) -> tuple[list[Interval], list[Interval]]:
    """Rounds on both sides in turn, each side first in every other one. Ours, theirs."""
    results: dict[Side, list[Interval]] = {theirs: [], ours: []}
    order = (theirs, ours) if theirs_first else (ours, theirs)
    for _ in range(rounds):
        for side in order:
            results[side].append(await measure(side, pace))
        order = order[::-1]
    return results[ours], results[theirs]


async def _drained(alarm: Alarm, lanes: Sequence[Lane]) -> None:
    deadline = time.monotonic() + DRAIN_S
    while any(lane.in_flight for lane in lanes) and time.monotonic() < deadline:
        await alarm.sleep(0.01)
    for lane in lanes:
        lane.verify()


def _interval(lanes: Sequence[Lane], before: _Mark, after: _Mark) -> Interval:
    seconds = after.at - before.at
    done = sum(after.done) - sum(before.done)
    trips = _between([lane.round_trips for lane in lanes], before.done, after.done)
    answers = _between([lane.answer_times for lane in lanes], before.answered, after.answered)
    return Interval(
        rate=done / seconds,
        p50_ms=percentile(trips, 0.5) * 1e3,
        p99_ms=percentile(trips, 0.99) * 1e3,
        cpu_us=(after.server_cpu - before.server_cpu) / done * 1e6,
        load_busy=(after.own_cpu - before.own_cpu) / seconds,
        ack_p50_ms=percentile(answers, 0.5) * 1e3 if answers else None,
    )


def _between(
    series: Sequence[Sequence[float]], start: Sequence[int], stop: Sequence[int]
) -> list[float]:
    return [v for s, a, b in zip(series, start, stop, strict=True) for v in s[a:b]]
