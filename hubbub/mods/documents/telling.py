"""What an answer of the mod `documents` has room for, and how it tells of conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, takewhile

from hubbub.mods.documents.merge import Conflict
from hubbub.mods.documents.shelf import Row
from hubbub.mods.documents.words import Conflicting, DocumentEdited

__all__ = ["conflict_told", "fitting"]

PART = 60_000
"""Characters of a text or a difference that one answer has; at least one line."""
MOST_CONFLICTS = 20
SHORT = 2_000
"""Characters of each text of a conflict."""


def fitting(lines: Sequence[str]) -> Sequence[str]:
    """As many of the first lines as one answer has room for."""
    ends = accumulate(len(line) + 1 for line in lines)
    return lines[: max(1, len(list(takewhile(lambda end: end <= PART, ends))))]


def conflict_told(row: Row, conflicts: Sequence[Conflict]) -> DocumentEdited:
    more = len(conflicts) - MOST_CONFLICTS
    return DocumentEdited(
        status="conflict",
        document=row.told(),
        version=row.version,
        conflicts=tuple(
            Conflicting(
                first=c.first,
                last=c.first + len(c.ours) - 1,
                was=_short(c.base),
                now=_short(c.ours),
                yours=_short(c.theirs),
            )
            for c in conflicts[:MOST_CONFLICTS]
        ),
        advice=(
            "nothing was saved. For each of `conflicts`, decide what lines `first` to `last` of "
            f"version {row.version} should be; then send your whole change again with "
            f"base_version {row.version} and the line numbers of that version (read_document)"
            + (f". {more} more conflicts are not shown" if more > 0 else "")
        ),
    )


def _short(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    return text if len(text) <= SHORT else f"{text[: SHORT - 3]}..."
