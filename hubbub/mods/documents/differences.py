"""What changed between two texts, as a unified diff. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import Match, SequenceMatcher

from hubbub.mods.documents.merge import Lines, matches

__all__ = ["differences"]


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
