"""Read marks: what is told is what the store has, what counts is what was asked for last."""

from __future__ import annotations

from hubbub.network.marks import ReadMarks
from hubbub.network.stored import StoredMark


def test_a_mark_that_could_not_be_stored_leaves_the_one_before() -> None:
    marks = ReadMarks([StoredMark("ann", 1, 3)])
    marks.announce("ann", 1, 5)
    marks.announce("ann", 1, 8)
    marks.withdraw("ann", 1, 8)
    assert marks.wanted("ann", 1) == 5
    marks.withdraw("ann", 1, 5)
    assert (marks.get("ann", 1), marks.wanted("ann", 1)) == (3, 3)
    marks.put("bob", 1, 3)
    for name in ("bob", "nobody"):
        marks.forget(name)
    assert (marks.get("ann", 1), marks.get("bob", 1)) == (3, 0)
