"""Offsets within a turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.turn.recording import TurnClock, worked_ms
from hubbub.protocol.turns import Step, ToolCallRecord
from tests.unit.agents.builders import Watch


def call(at: float | None = None, took: float | None = None) -> ToolCallRecord:
    return ToolCallRecord(id="c", name="add", arguments={}, at_ms=at, duration_ms=took)


def step(at: float | None, took: float | None, *calls: ToolCallRecord) -> Step:
    return Step(n=1, at_ms=at, duration_ms=took, calls=calls)


def test_a_turn_begins_at_zero_and_counts_milliseconds() -> None:
    watch = Watch()
    clock = TurnClock(monotonic=watch)
    assert clock.ms == 0
    watch.now += 1.23456
    assert clock.ms == 1234.6
    watch = Watch()
    clock = TurnClock(monotonic=watch)
    watch.now += 0.5
    at = clock.ms
    watch.now += 0.25
    assert clock.since(at) == 250.0


def test_a_turn_that_is_taken_up_again_goes_on_where_its_record_ends() -> None:
    watch = Watch()
    recorded = [step(0.0, 100.0, call(100.0, 50.0)), step(150.0, 80.5)]
    clock = TurnClock(recorded, watch)
    assert clock.ms == 230.5
    watch.now += 0.1
    assert clock.ms == 330.5
    assert worked_ms([]) == 0.0
    assert worked_ms([step(0.0, 10.0, call(10.0, 500.0), call(10.0, 20.0))]) == 510.0
    assert worked_ms([step(0.0, 10.0, call(12.0), call())]) == 12.0
    assert worked_ms([step(None, 70.0, call(None, 9.0)), step(None, None)]) == 70.0


times = st.none() | st.floats(0, 10**7)
records = st.builds(step, times, times, st.builds(call, times, times))


@given(st.lists(records, max_size=4), st.floats(0, 10**6))
def test_nothing_that_comes_later_is_placed_before_the_record(
    recorded: list[Step], passed_s: float
) -> None:
    watch = Watch()
    clock = TurnClock(recorded, watch)
    watch.now += passed_s
    at = clock.ms
    everything: list[Step | ToolCallRecord] = [*recorded, *(c for s in recorded for c in s.calls)]
    for done in everything:
        assert at >= (done.at_ms or 0) + (done.duration_ms or 0) - 0.1
    assert clock.since(at) == 0.0
