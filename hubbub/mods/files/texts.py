"""Parts of a text, as answers have room for them. Pure."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PART", "Part", "part_of"]

PART = 60_000
"""Bytes of text that one answer has; at least one line, which is never long."""


class Part(NamedTuple):
    """Some lines."""

    text: str
    last: int
    """The number of the last one."""


def part_of(text: str, first: int, last: int | None, *, numbers: bool) -> Part:
    """The lines `first` to `last` of a text, or as many of them as there is room for."""
    lines = text.split("\n")[first - 1 : last if last is None else max(last, first)]
    told: list[str] = []
    size = 0
    for number, line in enumerate(lines, first):
        told.append(f"{number}| {line}" if numbers else line)
        size += len(told[-1].encode()) + 1
        if size > PART and len(told) > 1:
            told.pop()
            break
    return Part("\n".join(told), first + len(told) - 1)
