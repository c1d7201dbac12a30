from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quantities import calculate
from questions import Plan, make_plan

JUPITER, SATURN = "the diameter of Jupiter", "the diameter of Saturn"


@pytest.mark.parametrize(
    ("text", "lookups", "expression"),
    [
        (
            f"@concierge how many kilometres is {JUPITER} plus {SATURN}, in miles?",
            (JUPITER, SATURN),
            "(7 km) + (9 km) in miles",
        ),
        (f"what is {JUPITER}?", (JUPITER,), "(7 km)"),
        (f"how many miles is {JUPITER}?", (JUPITER,), "(7 km) in miles"),
        (f"{JUPITER} in feet", (JUPITER,), "(7 km) in feet"),
        ("Jupiter's diameter divided by 3", ("Jupiter's diameter",), "(7 km) / 3"),
        (
            f"({JUPITER} + {SATURN}) / 2 in miles",
            (JUPITER, SATURN),
            "((7 km) + (9 km)) / 2 in miles",
        ),
        (f"what is the sum of {JUPITER} and {SATURN}?", (JUPITER, SATURN), "(7 km) + (9 km)"),
        (
            f"the difference between {JUPITER} and {SATURN}",
            (JUPITER, SATURN),
            "abs((7 km) - (9 km))",
        ),
        (f"the ratio of {JUPITER} to {SATURN}", (JUPITER, SATURN), "(7 km) / (9 km)"),
        (f"the average of {JUPITER} and {SATURN}", (JUPITER, SATURN), "mean((7 km), (9 km))"),
        (
            f"the largest of {JUPITER}, 5 km and {SATURN}",
            (JUPITER, SATURN),
            "max((7 km), (5 km), (9 km))",
        ),
        (f"the product of 2 and {JUPITER}", (JUPITER,), "2 * (7 km)"),
        (f"how much larger is {SATURN} than {JUPITER}?", (SATURN, JUPITER), "(7 km) - (9 km)"),
        (f"how much smaller is {JUPITER} than {SATURN}?", (JUPITER, SATURN), "(9 km) - (7 km)"),
        (
            f"how many times larger is {SATURN} than {JUPITER}?",
            (SATURN, JUPITER),
            "(7 km) / (9 km)",
        ),
        (f"twice {JUPITER}", (JUPITER,), "2 * (7 km)"),
        (f"half of {JUPITER}", (JUPITER,), "1 / 2 * (7 km)"),
        (f"a third of {JUPITER}", (JUPITER,), "1 / 3 * (7 km)"),
        (f"20% of {JUPITER}", (JUPITER,), "20% * (7 km)"),
        (f"3 times {JUPITER} minus 100 km", (JUPITER,), "3 * (7 km) - 100 km"),
        (f"pi times {JUPITER}", (JUPITER,), "pi * (7 km)"),
        (f"the square root of {JUPITER}", (JUPITER,), "sqrt((7 km))"),
    ],
)
def test_a_question_is_taken_apart(text: str, lookups: tuple[str, ...], expression: str) -> None:
    plan = make_plan(text)
    assert plan is not None
    assert plan.lookups == lookups
    assert plan.filled(["7 km", "9 km"]) == expression


@pytest.mark.parametrize(
    "text",
    [
        "2 + 3",
        "what is 5 km in miles?",
        "who can calculate?",
        "who is here",
        "hello",
        "what is a thread?",
        "tell me about planets",
        f"the difference between {JUPITER}, 2 and 3",
        "the sum of 3",
        "",
        "+",
        "(",
        "{0} of {1}} plus",
    ],
)
def test_other_questions_have_no_plan(text: str) -> None:
    assert make_plan(text) is None or "{" in text


def test_a_single_lookup_needs_no_calculation() -> None:
    assert not Plan(("x",), "{0}").calculates
    assert Plan(("x",), "{0}", "miles").calculates
    assert Plan(("x",), "2 * {0}").calculates


things = st.sampled_from([JUPITER, SATURN, "the height of K2", "Mars's radius", "4 km", "2.5 km"])


@given(
    things,
    st.lists(st.tuples(st.sampled_from([" + ", " minus ", " plus ", " - "]), things), max_size=4),
)
def test_every_plan_can_be_calculated(first: str, rest: list[tuple[str, str]]) -> None:
    question = first + "".join(sign + thing for sign, thing in rest)
    plan = make_plan(question)
    looked_up = [part for part in [first, *(thing for _, thing in rest)] if not part[0].isdigit()]
    if plan is None:
        assert not looked_up
        return
    assert list(plan.lookups) == looked_up
    calculate(plan.filled(["3 km"] * len(plan.lookups)))


@given(st.text(max_size=80))
def test_any_text_can_be_planned(text: str) -> None:
    plan = make_plan(text)
    assert plan is None or plan.lookups
