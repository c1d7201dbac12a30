from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.mods.documents.schemas import LineEdit
from hubbub.mods.documents.text import applied, numbered

LINES = ("one", "two", "three")


def edit(first: int, last: int, text: str) -> LineEdit:
    return LineEdit(first=first, last=last, text=text)


def test_all_numbers_are_those_of_the_version_that_was_read() -> None:
    for edits, after in (
        ([edit(2, 2, "TWO")], ["one", "TWO", "three"]),
        ([edit(1, 3, "all")], ["all"]),
        ([edit(2, 2, "")], ["one", "three"]),
        ([edit(1, 0, "zero")], ["zero", *LINES]),
        ([edit(4, 3, "four\nfive")], [*LINES, "four", "five"]),
        ([edit(3, 3, "3"), edit(1, 1, "1")], ["1", "two", "3"]),
        ([edit(2, 1, "before"), edit(2, 2, "TWO")], ["one", "before", "TWO", "three"]),
        ([edit(2, 1, "a"), edit(2, 1, "b")], ["one", "a", "b", "two", "three"]),
    ):
        assert applied(LINES, edits) == after


def test_edits_that_overlap_or_lie_outside_are_refused() -> None:
    for edits, why in (
        ([edit(4, 4, "x")], "has 3 lines, not 4 to 4"),
        ([edit(5, 4, "x")], "has 3 lines"),
        ([edit(3, 1, "x")], "not 3 to 1"),
        ([edit(1, 2, "x"), edit(2, 3, "y")], "two of them touch line 2"),
        ([edit(1, 3, "x"), edit(2, 1, "y")], "two of them touch line 2"),
    ):
        with pytest.raises(OperationError, match=why):
            applied(LINES, edits)


def test_lines_have_their_numbers_one_below_the_other() -> None:
    assert list(numbered(("a", "b"), 9)) == [" 9| a", "10| b"]


@given(st.lists(st.text("ab", max_size=2), min_size=1, max_size=8), st.data())
def test_one_edit_changes_its_lines_and_no_others(lines: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(lines) + 1))
    last = data.draw(st.integers(first - 1, len(lines)))
    assert applied(lines, [edit(first, last, "new")]) == [*lines[: first - 1], "new", *lines[last:]]
