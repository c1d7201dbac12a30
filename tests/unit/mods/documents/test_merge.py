from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hubbub.mods.documents.text import Conflict, merged

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
        assert merged(BASE, ours, theirs) == (both, ())


def test_a_place_that_both_have_changed_is_told_with_all_three_texts() -> None:
    lines, conflicts = merged(BASE, ("one", "2", *BASE[2:]), ("one", "TWO", *BASE[2:4], "FIVE"))
    assert lines == ("one", "2", "three", "four", "FIVE")
    assert conflicts == (Conflict(("two",), ("2",), ("TWO",), first=2),)


def test_two_who_write_at_the_end_conflict_and_neither_is_lost() -> None:
    lines, (conflict,) = merged(BASE, (*BASE, "mine"), (*BASE, "yours"))
    assert lines == (*BASE, "mine")
    assert (conflict.base, conflict.ours, conflict.theirs) == ((), ("mine",), ("yours",))


@given(texts, texts)
def test_who_edits_alone_gets_what_was_written(
    base: tuple[str, ...], edit: tuple[str, ...]
) -> None:
    assert merged(base, base, edit) == (edit, ())
    assert merged(base, edit, base) == (edit, ())
    assert merged(base, edit, edit) == (edit, ())


@given(texts, texts, texts)
def test_whoever_is_stored_first_the_same_places_conflict(
    base: tuple[str, ...], one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    forth, back = merged(base, one, other), merged(base, other, one)
    assert [(c.base, c.ours, c.theirs) for c in forth.conflicts] == [
        (c.base, c.theirs, c.ours) for c in back.conflicts
    ]
    if not forth.conflicts:
        assert forth.lines == back.lines


def test_the_place_of_a_conflict_is_told_as_it_stands_in_what_is_stored() -> None:
    theirs = ("new", "lines", *BASE[:3], "FOUR", "five")
    _, (conflict,) = merged(BASE, (*BASE[:3], "4", "five"), theirs)
    assert (conflict.ours, conflict.first) == (("4",), 4)


def test_thousands_of_equal_lines_are_one_place_that_is_not_searched() -> None:
    base = ("", *["same", "other"] * 5000, "")
    ours = ("ours", *base[1:-1][::-1], "ours too")
    assert merged(base, base, ours) == (ours, ())
    assert merged(base, ours, ("theirs", *base[1:])).conflicts
