"""What the hub says when a limit stands in the way."""

from __future__ import annotations

import pytest

from hubbub.network.control.notices import reached_text
from hubbub.protocol.spending import LimitName

TOLD: list[tuple[LimitName, float, float, str]] = [
    ("hops", 8, 8, "gone through 8 messages in a row, as much as it may"),
    ("wakes", 64, 64, "started 64 turns, as much as it may"),
    ("wall_clock", 1801, 1800, "gone on for 30 minutes, as much as it may"),
    ("tokens", 1000, 1000, "used 1,000 of its 1,000 tokens, as much as it may"),
    ("tokens", 900, 1000, "used 900 of its 1,000 tokens, questions under way included, and"),
    ("usd", 0.25, 0.5, "used $0.25 of its $0.5, questions under way included, and the next"),
]


@pytest.mark.behaviour("H-2")
def test_a_notice_names_the_limit_and_the_remedy() -> None:
    for limit, used, of, said in TOLD:
        for person in (True, False):
            text = reached_text(limit, used, of, person=person)
            assert said in text
            assert text.endswith(f"or raise network.budgets.{limit}.")
            assert ("Write again to go on" in text) == person
