"""Differences of texts: as everybody writes them, and in a time that is bounded."""

from __future__ import annotations

from difflib import unified_diff

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.mods.documents.text import differences, matches, merged

TEXTS = st.lists(st.sampled_from("abcde"), max_size=30)


def applied(old: list[str], diff: list[str]) -> list[str]:
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
    diff = list(differences(old, new, "old", "new"))
    assert bool(diff) == (old != new)
    assert applied(old, diff) == new


def test_a_diff_reads_as_diff_writes_it() -> None:
    old = [f"line {n}" for n in range(40)]
    new = [*old[:5], "in", *old[5:20], *old[21:39], "last"]
    expected = list(unified_diff(old, new, "one", "two", lineterm=""))
    assert list(differences(old, new, "one", "two")) == expected


@pytest.mark.behaviour("M-356")
def test_lines_that_repeat_each_other_are_compared_within_bounds() -> None:
    old = [str(n % 10) for n in range(600)]
    new = [str(-n % 10) for n in range(600)]
    diff = list(differences(old, new, "old", "new"))
    assert applied(old, diff) == new
    assert merged(old, old, new).lines == tuple(new)
    assert matches(old, old) == [(0, 0, 600)]
