"""Offsets within a turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.turn.steps import TurnClock
from hubbub.protocol.turns import Step, ToolCallRecord
from tests.unit.agents.builders import Watch


def call(at: float | None = None, took: float | None = None) -> ToolCallRecord:
    return ToolCallRecord(id="c", name="add", arguments={}, at_ms=at, duration_ms=took)


def step(at: float | None, took: float | None, *calls: ToolCallRecord) -> Step:
    return Step(n=1, at_ms=at, duration_ms=took, calls=calls)


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
