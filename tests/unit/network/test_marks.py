"""Read marks: what is told is what the store has, what counts is what was asked for last."""

from __future__ import annotations

from hubbub.network.marks import ReadMarks
from hubbub.network.stored import StoredMark


def test_a_mark_counts_when_it_is_announced_and_is_told_when_it_is_stored() -> None:
    marks = ReadMarks([StoredMark("ann", 1, 7), StoredMark("ann", 2, 3), StoredMark("bob", 1, 1)])
    assert (marks.get("ann", 1), marks.get("ann", 2), marks.get("bob", 1)) == (7, 3, 1)
    assert (marks.get("ann", 3), marks.get("carol", 1)) == (0, 0)
    for tseq in (8, 9, 2):
        marks.announce("ann", 1, tseq)
    assert (marks.get("ann", 1), marks.wanted("ann", 1)) == (7, 2), "the last is wanted"
    assert (marks.is_announced("ann", 1), marks.is_announced("ann", 2)) == (True, False)
    marks.settle("ann", 1, 8)
    marks.settle("ann", 1, 9)
    assert (marks.get("ann", 1), marks.wanted("ann", 1)) == (9, 2)
    marks.settle("ann", 1, 2)
    assert (marks.get("ann", 1), marks.wanted("ann", 1)) == (2, 2)
    assert not marks.is_announced("ann", 1)


def test_a_mark_that_could_not_be_stored_leaves_the_one_before() -> None:
    marks = ReadMarks([StoredMark("ann", 1, 3)])
    marks.announce("ann", 1, 5)
    marks.announce("ann", 1, 8)
    marks.give_up("ann", 1, 8)
    assert marks.wanted("ann", 1) == 5
    marks.give_up("ann", 1, 5)
    assert (marks.get("ann", 1), marks.wanted("ann", 1)) == (3, 3)
    marks.put("bob", 1, 3)
    for name in ("bob", "nobody"):
        marks.forget(name)
    assert (marks.get("ann", 1), marks.get("bob", 1)) == (3, 0)
