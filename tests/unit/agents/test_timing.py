"""Times of a turn's records, relative to its start."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.turn.steps import TurnClock
from hubbub.protocol.turns import Step, ToolCallRecord
from tests.unit.agents.builders import ManualClock


def call(at: float | None = None, took: float | None = None) -> ToolCallRecord:
    return ToolCallRecord(id="c", name="add", arguments={}, at_ms=at, duration_ms=took)


def step(at: float | None, took: float | None, *calls: ToolCallRecord) -> Step:
    return Step(n=1, at_ms=at, duration_ms=took, calls=calls)


times = st.none() | st.floats(0, 10**7)
records = st.builds(step, times, times, st.builds(call, times, times))


@given(st.lists(records, max_size=4), st.floats(0, 10**6))
def test_a_resumed_turn_continues_after_the_times_of_its_record(
    recorded: list[Step], passed_s: float
) -> None:
    monotonic = ManualClock()
    clock = TurnClock(recorded, monotonic)
    monotonic.now += passed_s
    at = clock.ms
    everything: list[Step | ToolCallRecord] = [*recorded, *(c for s in recorded for c in s.calls)]
    for done in everything:
        assert at >= (done.at_ms or 0) + (done.duration_ms or 0) - 0.1
    assert clock.since(at) == 0.0
