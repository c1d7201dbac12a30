from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phrasing import as_calculation, plain_question, split_target


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("@calculator what is 2 + 2?", "2 + 2"),
        ("@calculator, @concierge: 2 + 2", "2 + 2"),
        ("Hi, could you please tell me what's 20% of 50?", "20% of 50"),
        ("How much is 3 * 4, please?", "3 * 4"),
        ("what is 2 + 2 = ?", "2 + 2"),
        ("5!", "5!"),
        ("convert 5 miles to km.", "5 miles to km"),
        ("who is here?", "who is here"),
        ("  calculate   7  ", "7"),
        ("please", "please"),
        ("", ""),
    ],
)
def test_politeness_is_taken_off(text: str, question: str) -> None:
    assert plain_question(text) == question


@pytest.mark.parametrize(
    ("question", "rest", "target"),
    [
        ("5 miles in km", "5 miles", "km"),
        ("5 miles, in km", "5 miles", "km"),
        ("60 mph as metres per second", "60 mph", "metres per second"),
        ("100 km/h in mi/h", "100 km/h", "mi/h"),
        ("how many feet are in a mile", "a mile", "feet"),
        ("how many feet is K2's height", "K2's height", "feet"),
        ("how many minutes are there in 3 h 20 min", "3 h 20 min", "minutes"),
        ("how many feet does a mile have", "how many feet does a mile have", None),
        ("how many km is A plus B, in miles", "A plus B", "miles"),
        ("how many agents are here", "how many agents are here", None),
        ("the height of the tower in Paris", "the height of the tower in Paris", None),
        ("5 ft 11 in", "5 ft 11 in", None),
    ],
)
def test_a_wanted_unit_is_found_at_either_end(question: str, rest: str, target: str | None) -> None:
    assert split_target(question) == (rest, target)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("how many feet are in a mile?", "1 mile in feet"),
        ("@calculator how many litres in a cubic metre", "1 cubic metre in litres"),
        ("convert 5 miles into km", "5 miles in km"),
        ("what is an hour in seconds", "1 hour in seconds"),
        ("3 h 20 min in minutes please", "3 h 20 min in minutes"),
        ("2 + 2", "2 + 2"),
    ],
)
def test_a_question_becomes_an_expression(text: str, expression: str) -> None:
    assert as_calculation(text) == expression


@given(st.text(max_size=80))
def test_any_text_can_be_asked(text: str) -> None:
    assert isinstance(as_calculation(text), str)
