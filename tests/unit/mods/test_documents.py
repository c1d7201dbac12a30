"""Edits, merges and diffs of documents."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.mods.documents.schemas import LineEdit
from hubbub.mods.documents.text import (
    Conflict,
    apply_edits,
    matches,
    merge,
    number_lines,
    unified_diff,
)

LINES = ("one", "two", "three")


def edit(first: int, last: int, text: str) -> LineEdit:
    return LineEdit(first=first, last=last, text=text)


def test_line_numbers_refer_to_the_version_before_all_edits() -> None:
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
        assert apply_edits(LINES, edits) == after


def test_overlapping_or_out_of_range_edits_are_refused() -> None:
    for edits, why in (
        ([edit(4, 4, "x")], "lines 4 to 4 are out of range"),
        ([edit(5, 4, "x")], "has 3 lines"),
        ([edit(3, 1, "x")], "lines 3 to 1 are out of range"),
        ([edit(1, 2, "x"), edit(2, 3, "y")], "overlap at line 2"),
        ([edit(1, 3, "x"), edit(2, 1, "y")], "overlap at line 2"),
    ):
        with pytest.raises(OperationError, match=why):
            apply_edits(LINES, edits)


def test_line_numbers_are_right_aligned() -> None:
    assert list(number_lines(("a", "b"), 9)) == [" 9| a", "10| b"]


@given(st.lists(st.text("ab", max_size=2), min_size=1, max_size=8), st.data())
def test_an_edit_changes_only_its_own_lines(lines: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(lines) + 1))
    last = data.draw(st.integers(first - 1, len(lines)))
    assert apply_edits(lines, [edit(first, last, "new")]) == [
        *lines[: first - 1],
        "new",
        *lines[last:],
    ]


BASE = ("one", "two", "three", "four", "five")

texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12).map(tuple)


def test_edits_in_different_places_are_merged() -> None:
    for ours, theirs, both in (
        (("ONE", *BASE[1:]), (*BASE[:4], "FIVE"), ("ONE", "two", "three", "four", "FIVE")),
        (("zero", *BASE), (*BASE, "six"), ("zero", *BASE, "six")),
        (BASE[2:], (*BASE[:4], "5"), ("three", "four", "5")),
        (BASE, ("new",), ("new",)),
        (("same", *BASE[1:]), ("same", *BASE[1:]), ("same", *BASE[1:])),
    ):
        assert merge(BASE, ours, theirs) == (both, ())


def test_lines_changed_by_both_sides_are_a_conflict_with_all_three_texts() -> None:
    lines, conflicts = merge(BASE, ("one", "2", *BASE[2:]), ("one", "TWO", *BASE[2:4], "FIVE"))
    assert lines == ("one", "2", "three", "four", "FIVE")
    assert conflicts == (Conflict(("two",), ("2",), ("TWO",), first=2),)


def test_two_appended_texts_conflict_and_neither_is_lost() -> None:
    lines, (conflict,) = merge(BASE, (*BASE, "mine"), (*BASE, "yours"))
    assert lines == (*BASE, "mine")
    assert (conflict.base, conflict.ours, conflict.theirs) == ((), ("mine",), ("yours",))


@given(texts, texts)
def test_an_edit_by_one_side_alone_is_taken_as_written(
    base: tuple[str, ...], edit: tuple[str, ...]
) -> None:
    assert merge(base, base, edit) == (edit, ())
    assert merge(base, edit, base) == (edit, ())
    assert merge(base, edit, edit) == (edit, ())


@given(texts, texts, texts)
def test_the_same_lines_conflict_whichever_side_is_stored_first(
    base: tuple[str, ...], one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    forward, back = merge(base, one, other), merge(base, other, one)
    assert [(c.base, c.ours, c.theirs) for c in forward.conflicts] == [
        (c.base, c.theirs, c.ours) for c in back.conflicts
    ]
    if not forward.conflicts:
        assert forward.lines == back.lines


def test_a_conflict_gives_its_line_number_in_the_stored_version() -> None:
    theirs = ("new", "lines", *BASE[:3], "FOUR", "five")
    _, (conflict,) = merge(BASE, (*BASE[:3], "4", "five"), theirs)
    assert (conflict.ours, conflict.first) == (("4",), 4)


def test_thousands_of_repeated_lines_are_merged_as_one_block() -> None:
    base = ("", *["same", "other"] * 5000, "")
    ours = ("ours", *base[1:-1][::-1], "ours too")
    assert merge(base, base, ours) == (ours, ())
    assert merge(base, ours, ("theirs", *base[1:])).conflicts


TEXTS = st.lists(st.sampled_from("abcde"), max_size=30)


def patched(old: list[str], diff: list[str]) -> list[str]:
    """Applies a unified diff."""
    new: list[str] = []
    at = 0
    for line in diff[2:]:
        if line.startswith("@@"):
            start, _, size = line.split()[1][1:].partition(",")
            begin = int(start) - (size != "0")
            new += old[at:begin]
            at = begin
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [line[1:]] if line.startswith(" ") else []
            at += 1
    return new + old[at:]


@given(TEXTS, TEXTS)
def test_applying_the_diff_to_the_old_text_yields_the_new_one(
    old: list[str], new: list[str]
) -> None:
    diff = list(unified_diff(old, new, "old", "new"))
    assert bool(diff) == (old != new)
    assert patched(old, diff) == new


def test_a_diff_equals_that_of_difflib() -> None:
    old = [f"line {n}" for n in range(40)]
    new = [*old[:5], "in", *old[5:20], *old[21:39], "last"]
    expected = list(difflib.unified_diff(old, new, "one", "two", lineterm=""))
    assert list(unified_diff(old, new, "one", "two")) == expected


@pytest.mark.behaviour("M-356")
def test_repetitive_lines_are_compared_in_bounded_time() -> None:
    old = [str(n % 10) for n in range(600)]
    new = [str(-n % 10) for n in range(600)]
    diff = list(unified_diff(old, new, "old", "new"))
    assert patched(old, diff) == new
    assert merge(old, old, new).lines == tuple(new)
    assert matches(old, old) == [(0, 0, 600)]


@pytest.mark.behaviour("M-356")
def test_equal_lines_far_apart_are_compared_in_bounded_time() -> None:
    size = 500_000
    old, new = [[f"{n}" if n % 250 == 0 else side for n in range(size)] for side in ("a", "b")]
    assert matches(old, new)[0] == (0, 0, 1)  # to find them all would take many minutes
