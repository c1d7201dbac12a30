"""Texts of documents: edits, merges and differences."""

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
        assert apply_edits(LINES, edits) == after


def test_edits_that_overlap_or_lie_outside_are_refused() -> None:
    for edits, why in (
        ([edit(4, 4, "x")], "lines 4 to 4 are out of range"),
        ([edit(5, 4, "x")], "has 3 lines"),
        ([edit(3, 1, "x")], "lines 3 to 1 are out of range"),
        ([edit(1, 2, "x"), edit(2, 3, "y")], "overlap at line 2"),
        ([edit(1, 3, "x"), edit(2, 1, "y")], "overlap at line 2"),
    ):
        with pytest.raises(OperationError, match=why):
            apply_edits(LINES, edits)


def test_lines_have_their_numbers_one_below_the_other() -> None:
    assert list(number_lines(("a", "b"), 9)) == [" 9| a", "10| b"]


@given(st.lists(st.text("ab", max_size=2), min_size=1, max_size=8), st.data())
def test_one_edit_changes_its_lines_and_no_others(lines: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(lines) + 1))
    last = data.draw(st.integers(first - 1, len(lines)))
    assert apply_edits(lines, [edit(first, last, "new")]) == [
        *lines[: first - 1],
        "new",
        *lines[last:],
    ]


BASE = ("one", "two", "three", "four", "five")

texts = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12).map(tuple)


def test_edits_of_different_places_are_joined() -> None:
    for ours, theirs, both in (
        (("ONE", *BASE[1:]), (*BASE[:4], "FIVE"), ("ONE", "two", "three", "four", "FIVE")),
        (("zero", *BASE), (*BASE, "six"), ("zero", *BASE, "six")),
        (BASE[2:], (*BASE[:4], "5"), ("three", "four", "5")),
        (BASE, ("new",), ("new",)),
        (("same", *BASE[1:]), ("same", *BASE[1:]), ("same", *BASE[1:])),
    ):
        assert merge(BASE, ours, theirs) == (both, ())


def test_a_place_that_both_have_changed_is_told_with_all_three_texts() -> None:
    lines, conflicts = merge(BASE, ("one", "2", *BASE[2:]), ("one", "TWO", *BASE[2:4], "FIVE"))
    assert lines == ("one", "2", "three", "four", "FIVE")
    assert conflicts == (Conflict(("two",), ("2",), ("TWO",), first=2),)


def test_two_who_write_at_the_end_conflict_and_neither_is_lost() -> None:
    lines, (conflict,) = merge(BASE, (*BASE, "mine"), (*BASE, "yours"))
    assert lines == (*BASE, "mine")
    assert (conflict.base, conflict.ours, conflict.theirs) == ((), ("mine",), ("yours",))


@given(texts, texts)
def test_who_edits_alone_gets_what_was_written(
    base: tuple[str, ...], edit: tuple[str, ...]
) -> None:
    assert merge(base, base, edit) == (edit, ())
    assert merge(base, edit, base) == (edit, ())
    assert merge(base, edit, edit) == (edit, ())


@given(texts, texts, texts)
def test_whoever_is_stored_first_the_same_places_conflict(
    base: tuple[str, ...], one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    forth, back = merge(base, one, other), merge(base, other, one)
    assert [(c.base, c.ours, c.theirs) for c in forth.conflicts] == [
        (c.base, c.theirs, c.ours) for c in back.conflicts
    ]
    if not forth.conflicts:
        assert forth.lines == back.lines


def test_the_place_of_a_conflict_is_told_as_it_stands_in_what_is_stored() -> None:
    theirs = ("new", "lines", *BASE[:3], "FOUR", "five")
    _, (conflict,) = merge(BASE, (*BASE[:3], "4", "five"), theirs)
    assert (conflict.ours, conflict.first) == (("4",), 4)


def test_thousands_of_equal_lines_are_one_place_that_is_not_searched() -> None:
    base = ("", *["same", "other"] * 5000, "")
    ours = ("ours", *base[1:-1][::-1], "ours too")
    assert merge(base, base, ours) == (ours, ())
    assert merge(base, ours, ("theirs", *base[1:])).conflicts


TEXTS = st.lists(st.sampled_from("abcde"), max_size=30)


def patched(old: list[str], diff: list[str]) -> list[str]:
    """The new text, made of the old one and the diff."""
    made: list[str] = []
    at = 0
    for line in diff[2:]:
        if line.startswith("@@"):
            start, _, size = line.split()[1][1:].partition(",")
            begin = int(start) - (size != "0")
            made += old[at:begin]
            at = begin
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert old[at] == line[1:]
            made += [line[1:]] if line.startswith(" ") else []
            at += 1
    return made + old[at:]


@given(TEXTS, TEXTS)
def test_the_new_text_can_be_made_of_the_old_one_and_the_diff(
    old: list[str], new: list[str]
) -> None:
    diff = list(unified_diff(old, new, "old", "new"))
    assert bool(diff) == (old != new)
    assert patched(old, diff) == new


def test_a_diff_reads_as_diff_writes_it() -> None:
    old = [f"line {n}" for n in range(40)]
    new = [*old[:5], "in", *old[5:20], *old[21:39], "last"]
    expected = list(difflib.unified_diff(old, new, "one", "two", lineterm=""))
    assert list(unified_diff(old, new, "one", "two")) == expected


@pytest.mark.behaviour("M-356")
def test_lines_that_repeat_each_other_are_compared_within_bounds() -> None:
    old = [str(n % 10) for n in range(600)]
    new = [str(-n % 10) for n in range(600)]
    diff = list(unified_diff(old, new, "old", "new"))
    assert patched(old, diff) == new
    assert merge(old, old, new).lines == tuple(new)
    assert matches(old, old) == [(0, 0, 600)]
