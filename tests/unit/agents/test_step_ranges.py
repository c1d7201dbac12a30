"""The numbers of the steps of a turn and its helpers, and their names for people."""

from __future__ import annotations

import pytest

from hubbub.agents.turn.steps import StepRange, step_names
from hubbub.protocol.turns import Step, ToolCallRecord

pytestmark = pytest.mark.behaviour("O-11")


def step(n: int, *calls: str, error: str | None = None) -> Step:
    made = (
        ToolCallRecord(id=f"{n}_{i}", name=c, arguments={}, error=error)
        for i, c in enumerate(calls)
    )
    return Step(n=n, calls=tuple(made))


def test_a_helpers_steps_are_named_after_the_step_that_called_it() -> None:
    assert step_names([step(1, "look"), step(2), step(3, "finish")]) == {1: "1", 2: "2", 3: "3"}
    steps = [
        step(1, "look"), step(2, "fork", "look", "fork"), step(3, "fork"),
        step(10_001), step(10_002), step(27_001), step(44_001),
    ]  # fmt: skip
    assert list(step_names(steps).items())[3:] == [
        (10_001, "1 of helper 1 of step 2"),
        (10_002, "2 of helper 1 of step 2"),
        (27_001, "1 of helper 2 of step 2"),
        (44_001, "1 of helper 3 of step 3"),
    ]
    steps = [step(1, "fork"), step(10_001), step(10_002, "fork"), step(11_001)]
    assert step_names(steps)[11_001] == "1 of helper 1 of step 2 of helper 1 of step 1"
    for error in ["unknown_tool", "too_many_helpers", "not_first"]:
        steps = [step(1, "fork", error=error), step(2, "fork"), step(10_001)]
        assert step_names(steps)[10_001] == "1 of helper 1 of step 2"


def test_the_ranges_of_helpers_do_not_overlap() -> None:
    first, second = StepRange().child(1), StepRange().child(2)
    assert first.holds(10_001)
    assert second.holds(27_001)
    assert not any(other.holds(10_001) for other in (StepRange(), first.child(1), second))
