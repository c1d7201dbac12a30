"""Plans: validation, the order of steps, and results filled into arguments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from hubbub.agents.roles.plan import (
    InvalidAnswer,
    InvalidPlan,
    Plan,
    fill,
    fill_arguments,
    fill_text,
    read,
    references,
)

EXECUTORS = ("look_up", "add", "ann")


def step(id: int, *needs: int, executor: str = "add", **more: JsonValue) -> dict[str, JsonValue]:
    return {"id": id, "goal": f"goal {id}", "executor": executor, "depends_on": list(needs), **more}


def plan(*steps: dict[str, JsonValue]) -> Plan:
    return Plan.model_validate({"steps": list(steps)})


def error_of(made: Plan, max_steps: int = 8) -> str:
    with pytest.raises(InvalidPlan) as caught:
        made.validate_for(EXECUTORS, max_steps)
    return str(caught.value)


def test_an_invalid_plan_is_refused_with_the_reason() -> None:
    assert "step 1: there is no tool or agent 'ad'" in error_of(plan(step(1, executor="ad")))
    assert "did you mean 'look_up'" in error_of(plan(step(1, executor="lookup")))
    assert error_of(plan(step(1), step(1))) == "two steps have the same id"
    assert "depends on step 7, which is not there" in error_of(plan(step(1, 7)))
    assert error_of(plan(step(1, 1))) == "the steps 1 wait for each other"
    assert error_of(plan(step(1, 3), step(2), step(3, 1))) == "the steps 1, 3 wait for each other"
    assert "at most 2 are allowed" in error_of(plan(step(1), step(2), step(3)), 2)
    odd = plan(step(1), step(2, arguments={"a": "$step_1_output"}))
    assert "step 2: `$step_1_output` stands for no result" in error_of(odd)
    made = plan(step(3, 1, 2), step(1), step(2))
    assert made.validate_for(EXECUTORS, 8) is made
    cases: list[list[JsonValue]] = [
        [], [step(0)], [{"id": 1, "goal": "", "executor": "add"}], [{"id": 1, "goal": "a"}],
        [{**step(1), "arguments": "none"}], [{**step(1), "surprise": True}],
    ]  # fmt: skip
    for steps in cases:
        with pytest.raises(ValidationError):
            Plan.model_validate({"steps": steps})


def test_an_unreadable_plan_is_refused_naming_only_the_cause() -> None:
    with pytest.raises(InvalidAnswer) as caught:
        read(Plan, {"steps": [{"id": 1, "goal": "look", "tool": "look"}]})
    assert str(caught.value) == (
        "steps.0.executor: Field required; steps.0.tool: Extra inputs are not permitted"
    )
    with pytest.raises(InvalidAnswer, match=r"^steps: Tuple should have at least 1 item"):
        read(Plan, {"steps": []})


def test_a_reference_to_a_result_is_a_dependency_even_if_not_declared() -> None:
    made = plan(
        step(1),
        step(2, arguments={"deep": [{"x": "from $step_1_result"}]}),
        {**step(3), "goal": "tell ann $step_2_result"},
    )
    assert made.needs(2) == {1}
    assert made.needs(3) == {2}
    assert [s.id for s in made.ready((), ())] == [1]
    assert [s.id for s in made.ready([1], [1])] == [2]
    assert made.after(1) == {1, 2, 3}
    assert made.after(2) == {2, 3}
    made = plan(step(1), step(2, 1), step(3))
    assert [s.id for s in made.ready([], [1])] == [3]
    assert [s.id for s in made.ready([3], [1, 3])] == []


def test_a_reference_alone_becomes_the_value_and_within_a_text_its_text() -> None:
    results = {1: "24.5", 2: '{"a": [1]}', 3: "blue"}
    filled = fill(
        {"n": "$step_1_result", "o": ["$step_2_result"], "t": "$step_3_result",
         "s": "it is $step_1_result, $step_3_result.", "k": 1},
        results,
    )  # fmt: skip
    assert filled == {
        "n": 24.5, "o": [{"a": [1]}], "t": "blue", "s": "it is 24.5, blue.", "k": 1,
    }  # fmt: skip
    schema: dict[str, JsonValue] = {
        "properties": {"zip": {"type": "string"}, "n": {"type": "integer"}}
    }
    given: dict[str, JsonValue] = {"zip": "$step_1_result", "n": "$step_1_result", "x": None}
    assert fill_arguments(given, {1: "01234"}, schema) == {"zip": "01234", "n": "01234", "x": None}
    assert fill_arguments(given, {1: "1234"}, schema) == {"zip": "1234", "n": 1234, "x": None}
    for text in [
        "$step_0_result", "$step_1_results", "$step_x_result", "step_1_result", "$step_1_result_x",
    ]:  # fmt: skip
        assert fill(text, {0: "zero", 1: "one"}) == text
        assert references(text) == frozenset()
    results = {1: "$step_2_result", 2: "secret"}
    assert fill("$step_1_result", results) == "$step_2_result"
    assert fill_text("got $step_1_result", results) == "got $step_2_result"
    assert fill("$step_3_result", results) == "$step_3_result"
    for result in ["1e999", "NaN", '"\\ud800"', "[" * 15 + "]" * 15, "{1}"]:
        filled = fill(["$step_1_result"], {1: result})
        assert isinstance(filled, list)
        assert isinstance(filled[0], str)
        filled[0].encode()


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans without cycles, in any order."""
    count = draw(st.integers(1, 8))
    steps = [
        step(n, *draw(st.sets(st.integers(1, n - 1)) if n > 1 else st.just(set())))
        for n in range(1, count + 1)
    ]
    return plan(*draw(st.permutations(steps)))


@given(plans(), st.sets(st.integers(1, 8)))
def test_every_plan_without_cycles_ends(made: Plan, failing: set[int]) -> None:
    made.validate_for(EXECUTORS, 8)
    done: set[int] = set()
    begun: set[int] = set()
    while ready := made.ready(done, begun):
        for one in ready:
            assert made.needs(one.id) <= done
            begun.add(one.id)
        done |= {one.id for one in ready} - failing
    left = {s.id for s in made.steps} - begun
    blocked = {n for f in failing if f in begun for n in made.after(f)}
    assert left <= blocked
