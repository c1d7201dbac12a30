"""Texts of documents, line by line: edits, differences, and two edits of one text joined. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import NamedTuple

from hubbub.mods.documents.schemas import LineEdit
from hubbub.mods.operation import bad_request

__all__ = ["Conflict", "applied", "differences", "matches", "merged", "numbered"]

Lines = Sequence[str]

MOST_PAIRS = 3_000_000
"""Pairs of equal lines that are looked at: about a second. What is left then counts as one
changed place: a few thousand lines that repeat each other would take minutes."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A place that both have changed. Line numbers are from 1; an empty range ends before it
    begins."""

    base: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    first: int
    """The first line of the place in `ours`."""


class Merged(NamedTuple):
    lines: tuple[str, ...]
    """With both in them; where they conflict, `ours`."""
    conflicts: tuple[Conflict, ...]


class _Run(NamedTuple):
    """Lines that stand in all three texts: where they begin in each, and how many they are."""

    base: int
    ours: int
    theirs: int
    size: int


def merged(base: Lines, ours: Lines, theirs: Lines) -> Merged:
    """The text with what both have changed."""
    lines: list[str] = []
    conflicts: list[Conflict] = []
    at = _Run(0, 0, 0, 0)
    for run in _common(base, ours, theirs):
        was = tuple(base[at.base : run.base])
        mine = tuple(ours[at.ours : run.ours])
        other = tuple(theirs[at.theirs : run.theirs])
        if other in (was, mine):
            lines += mine
        elif mine == was:
            lines += other
        else:
            conflicts.append(Conflict(was, mine, other, at.ours + 1))
            lines += mine
        lines += base[run.base : run.base + run.size]
        at = _Run(run.base + run.size, run.ours + run.size, run.theirs + run.size, 0)
    return Merged(tuple(lines), tuple(conflicts))


def _common(base: Lines, ours: Lines, theirs: Lines) -> Iterator[_Run]:
    """The runs that stand in all three, in order; the last one is the empty end of all."""
    mine, other = matches(base, ours), matches(base, theirs)
    i = j = 0
    while i < len(mine) and j < len(other):
        start = max(mine[i][0], other[j][0])
        end = min(mine[i][0] + mine[i][2], other[j][0] + other[j][2])
        if start < end:
            ours_at = mine[i][1] + start - mine[i][0]
            theirs_at = other[j][1] + start - other[j][0]
            yield _Run(start, ours_at, theirs_at, end - start)
        if mine[i][0] + mine[i][2] < other[j][0] + other[j][2]:
            i += 1
        else:
            j += 1
    yield _Run(len(base), len(ours), len(theirs), 0)


def matches(base: Lines, text: Lines) -> list[tuple[int, int, int]]:
    """Where runs of `base` stand in `text`: both places, and how many lines."""
    before = _same(base, text)
    shorter = min(len(base), len(text)) - before
    behind = _same(base[len(base) - shorter :][::-1], text[len(text) - shorter :][::-1])
    old, new = base[before : len(base) - behind], text[before : len(text) - behind]
    found = [(0, 0, before)]
    found += [
        (a + before, b + before, size) for a, b, size in _Matcher(old, new).get_matching_blocks()
    ]
    found.append((len(base) - behind, len(text) - behind, behind))
    return [block for block in found if block[2]]


def _same(one: Lines, other: Lines) -> int:
    """How many lines both begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class _Matcher(SequenceMatcher[str]):
    """Finds runs of lines that stand in both texts, within so much work."""

    def __init__(self, old: Lines, new: Lines):
        super().__init__(None, old, new, autojunk=False)
        often = Counter(new)
        self._pairs = [0, *accumulate(often[line] for line in old)]
        self._left = MOST_PAIRS

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        """It is looked for between what was found before, again and again: each time every pair of
        equal lines there is looked at."""
        self._left -= self._pairs[-1 if ahi is None else ahi] - self._pairs[alo]
        if self._left < 0:
            return Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)


def differences(old: Lines, new: Lines, was: str, now: str) -> Iterator[str]:
    """The lines of the diff; none if nothing changed. `was` and `now` are the texts' names.

    As `difflib.unified_diff`, which takes minutes for texts whose lines repeat each other.
    """
    for count, group in enumerate(_Matched(old, new).get_grouped_opcodes()):
        if not count:
            yield from (f"--- {was}", f"+++ {now}")
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[a:b])
                continue
            yield from (f"-{line}" for line in old[a:b])
            yield from (f"+{line}" for line in new[c:d])


class _Matched(SequenceMatcher[str]):
    """Knows where the lines of one text stand in the other."""

    def __init__(self, old: Lines, new: Lines):
        super().__init__(None, old, new, autojunk=False)
        self._found = _joined(old, new)

    def get_matching_blocks(self) -> list[Match]:
        return self._found


def _joined(old: Lines, new: Lines) -> list[Match]:
    """Runs that follow each other as one, and the empty one at the end."""
    found: list[Match] = []
    for a, b, size in matches(old, new):
        last = found[-1] if found else Match(0, 0, 0)
        if found and (last.a + last.size, last.b + last.size) == (a, b):
            found[-1] = Match(last.a, last.b, last.size + size)
        else:
            found.append(Match(a, b, size))
    return [*found, Match(len(old), len(new), 0)]


def _range(start: int, stop: int) -> str:
    """As diff writes it: from 1, and an empty range begins before it."""
    size = stop - start
    return f"{start + 1}" if size == 1 else f"{start + (1 if size else 0)},{size}"


def numbered(lines: Sequence[str], first: int) -> Iterator[str]:
    """`12| text`, as edits name lines."""
    width = len(str(first + len(lines)))
    return (f"{n:>{width}}| {line}" for n, line in enumerate(lines, first))


def applied(lines: Sequence[str], edits: Sequence[LineEdit]) -> list[str]:
    """The lines after all edits, whose numbers are those of `lines`.

    Raises `OperationError` for edits that overlap or lie outside.
    """
    made: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.first, edit.last)):
        if edit.last > len(lines) or edit.first > len(lines) + 1 or edit.last < edit.first - 1:
            raise bad_request(
                f"edits: this version has {len(lines)} lines, not {edit.first} to {edit.last}"
            )
        if edit.first <= done:
            raise bad_request(f"edits: two of them touch line {edit.first}")
        made += lines[done : edit.first - 1]
        made += edit.text.split("\n") if edit.text else []
        done = edit.last
    return [*made, *lines[done:]]
