from __future__ import annotations

import pytest
from calculator import HELP, answer, is_calculation

from tests.unit.configs.conftest import Village


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what is 2 + 3 * 4^2?", "2 + 3 * 4^2 = 50"),
        ("1/3", "1/3 ≈ 0.333333333333"),
        ("convert 5 miles to km", "5 miles in km = 8.04672 km"),
        ("how many feet are in a mile?", "1 mile in feet = 5280 feet"),
        ("hello", HELP),
        ("", HELP),
        ("42", HELP),
        ("2 +* 3", "I cannot calculate that:\n2 +* 3\n   ^ I did not expect '*' here"),
        (
            "5 km in kg",
            "I cannot calculate that:\n5 km in kg\n"
            "     ^ a length cannot be given in kg, a unit of mass",
        ),
    ],
)
def test_an_answer_shows_the_calculation_or_what_is_wrong(text: str, expected: str) -> None:
    assert answer(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what is 2 + 2?", True),
        ("5 miles in km", True),
        ("I have 3 apples", False),
        ("it is 2026", False),
        ("hello", False),
        ("42", False),
        ("1,234.5", False),
    ],
)
def test_a_calculation_is_told_from_talk(text: str, expected: bool) -> None:
    assert is_calculation(text) is expected


async def test_a_person_gets_the_result_directly_and_in_a_channel(village: Village) -> None:
    ann = await village.person("ann")
    assert await ann.asks("calculator", "6 * 7") == "6 * 7 = 42"
    await ann.posts("general", "hey @calculator, what is 72 F in C?")
    answered = await ann.hears("calculator", lambda m: m.type == "channel")
    assert answered.text == "72 F in C ≈ 22.222222 °C"
    assert answered.thread_id == "channel.general"


async def test_a_broadcast_is_answered_only_if_it_can_be_calculated(village: Village) -> None:
    ann = await village.person("ann")
    await ann.broadcasts("good morning, I have 3 questions")
    await ann.broadcasts("what is 2^10?")
    assert (await ann.hears("calculator")).text == "2^10 = 1024"
