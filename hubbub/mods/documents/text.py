"""Line-based operations on the text of documents: edits, diffs and three-way merges. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import NamedTuple

from hubbub.mods.documents.schemas import LineEdit
from hubbub.mods.operation import bad_request

__all__ = ["Conflict", "apply_edits", "matches", "merge", "number_lines", "unified_diff"]

Lines = Sequence[str]

MAX_STEPS = 3_000_000
"""Limit on the lines visited and the pairs of equal lines compared, about a second of work. The
rest then counts as one change: a few thousand repeated lines, or a few thousand equal lines far
apart, would take minutes."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A range of lines that both sides changed."""

    base: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    first: int
    """The first line of the range in `ours`, counted from 1."""


class Merged(NamedTuple):
    lines: tuple[str, ...]
    """With the changes of both sides. Conflicting ranges have the lines of `ours`."""
    conflicts: tuple[Conflict, ...]


class _Run(NamedTuple):
    """Lines common to all three texts: their start in each, and their number."""

    base: int
    ours: int
    theirs: int
    size: int


def merge(base: Lines, ours: Lines, theirs: Lines) -> Merged:
    """A three-way merge."""
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
    """The runs common to all three texts, in order. The last one is empty, at the end of each."""
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
    """The runs common to `base` and `text`: the start in each, and the number of lines."""
    prefix = _common_prefix(base, text)
    shorter = min(len(base), len(text)) - prefix
    suffix = _common_prefix(base[len(base) - shorter :][::-1], text[len(text) - shorter :][::-1])
    old, new = base[prefix : len(base) - suffix], text[prefix : len(text) - suffix]
    blocks = [(0, 0, prefix)]
    blocks += [
        (a + prefix, b + prefix, size) for a, b, size in _Matcher(old, new).get_matching_blocks()
    ]
    blocks.append((len(base) - suffix, len(text) - suffix, suffix))
    return [block for block in blocks if block[2]]


def _common_prefix(one: Lines, other: Lines) -> int:
    """The number of equal lines at the start."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class _Matcher(SequenceMatcher[str]):
    """Finds runs of lines common to both texts, with a limit on the work."""

    def __init__(self, old: Lines, new: Lines):
        super().__init__(None, old, new, autojunk=False)
        counts = Counter(new)
        self._pairs = [0, *accumulate(counts[line] for line in old)]
        self._remaining = MAX_STEPS

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        """Called for each gap between matches. Each call visits all its lines, and compares all
        pairs of equal lines in it."""
        end = len(self._pairs) - 1 if ahi is None else ahi
        self._remaining -= end - alo + self._pairs[end] - self._pairs[alo]
        if self._remaining < 0:
            return Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)


def unified_diff(old: Lines, new: Lines, old_name: str, new_name: str) -> Iterator[str]:
    """The lines of the diff, none if the texts are equal.

    Replaces `difflib.unified_diff`, which takes minutes for texts with many repeated lines.
    """
    for count, group in enumerate(_Matched(old, new).get_grouped_opcodes()):
        if not count:
            yield from (f"--- {old_name}", f"+++ {new_name}")
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[a:b])
                continue
            yield from (f"-{line}" for line in old[a:b])
            yield from (f"+{line}" for line in new[c:d])


class _Matched(SequenceMatcher[str]):
    """Gives difflib the matches that `matches` finds."""

    def __init__(self, old: Lines, new: Lines):
        super().__init__(None, old, new, autojunk=False)
        self._blocks = _joined(old, new)

    def get_matching_blocks(self) -> list[Match]:
        return self._blocks


def _joined(old: Lines, new: Lines) -> list[Match]:
    """The matches with adjacent runs joined, and the empty one at the end."""
    blocks: list[Match] = []
    for a, b, size in matches(old, new):
        last = blocks[-1] if blocks else Match(0, 0, 0)
        if blocks and (last.a + last.size, last.b + last.size) == (a, b):
            blocks[-1] = Match(last.a, last.b, last.size + size)
        else:
            blocks.append(Match(a, b, size))
    return [*blocks, Match(len(old), len(new), 0)]


def _range(start: int, stop: int) -> str:
    """In diff notation: counted from 1; an empty range starts one line earlier."""
    size = stop - start
    return f"{start + 1}" if size == 1 else f"{start + (1 if size else 0)},{size}"


def number_lines(lines: Sequence[str], first: int) -> Iterator[str]:
    """Prefix each line with its number: `12| text`."""
    width = len(str(first + len(lines)))
    return (f"{n:>{width}}| {line}" for n, line in enumerate(lines, first))


def apply_edits(lines: Sequence[str], edits: Sequence[LineEdit]) -> list[str]:
    """The lines after all edits. Line numbers in edits refer to `lines`.

    Raises `OperationError` for edits that overlap or are out of range.
    """
    result: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.first, edit.last)):
        if edit.last > len(lines) or edit.first > len(lines) + 1 or edit.last < edit.first - 1:
            raise bad_request(
                f"edits: lines {edit.first} to {edit.last} are out of range; "
                f"this version has {len(lines)} lines"
            )
        if edit.first <= done:
            raise bad_request(f"edits: two edits overlap at line {edit.first}")
        result += lines[done : edit.first - 1]
        result += edit.text.split("\n") if edit.text else []
        done = edit.last
    return [*result, *lines[done:]]
