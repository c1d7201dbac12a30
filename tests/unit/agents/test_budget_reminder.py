"""The reminder for a model when little of a budget is left."""

from __future__ import annotations

import pytest

from hubbub.agents.turn.reservations import reminder
from hubbub.protocol.spending import LimitName, RemainingBudget, Whose


def budget(
    limit: LimitName, used: float, of: float, whose: Whose = "interaction"
) -> RemainingBudget:
    return RemainingBudget(limit=limit, whose=whose, used=used, of=of)


@pytest.mark.behaviour("H-62")
def test_a_reminder_names_the_rest_and_the_limit() -> None:
    assert reminder([budget("tokens", 18_800, 20_000)]) == (
        "Little is left for this task: 1,200 of 20,000 tokens. Finish now with what you have."
    )
    cases: list[tuple[LimitName, str]] = [
        ("usd", "$0.2500 of $3.0000"), ("wall_clock", "0 of 3 seconds"),
        ("wakes", "0 of 3 turns that messages may start"),
        ("agents", "0 of 3 agents that may be woken"), ("hops", "0 of 3 messages in a row"),
        ("fan_out", "0 of 3 agents at a time"),
    ]  # fmt: skip
    for limit, text in cases:
        assert text in reminder([budget(limit, 2.75 if limit == "usd" else 3, 3)])
    assert "0 of 10 tokens" in reminder([budget("tokens", 12, 10)])
    assert reminder([]) == ""
    text = reminder([budget("wakes", 63, 64)])
    assert "Finish" not in text
    assert text.endswith("Involve no other agent unless you must.")


def test_each_kind_of_budget_has_its_own_sentence_the_nearest_first() -> None:
    low = [
        budget("tokens", 9, 10, "network"),
        budget("usd", 9, 10),
        budget("tokens", 8.5, 10, "agent"),
        budget("tokens", 9, 10),
    ]
    sentences = reminder(low).split(". ")
    assert [s.partition(":")[0] for s in sentences[:3]] == [
        "Little is left for this task",
        "Little is left for you today",
        "Little is left for all agents today",
    ]
    assert sentences[0].endswith("$1.0000 of $10.0000, 1 of 10 tokens")
