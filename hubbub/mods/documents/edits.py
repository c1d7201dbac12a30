"""Edits by line, and lines with their numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hubbub.errors import OperationError
from hubbub.mods.documents.words import LineEdit
from hubbub.protocol.codes import ErrorCode

__all__ = ["applied", "numbered"]


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
            raise OperationError(
                ErrorCode.BAD_REQUEST,
                f"edits: this version has {len(lines)} lines, not {edit.first} to {edit.last}",
            )
        if edit.first <= done:
            raise OperationError(
                ErrorCode.BAD_REQUEST, f"edits: two of them touch line {edit.first}"
            )
        made += lines[done : edit.first - 1]
        made += edit.text.split("\n") if edit.text else []
        done = edit.last
    return [*made, *lines[done:]]
