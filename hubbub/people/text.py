"""Text by others made safe for a terminal: it cannot control the terminal or mislead the reader."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

__all__ = ["aligned", "clip", "columns", "counted", "one_line", "visible", "wrap"]

_STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad"  # control characters except line feed; the soft hyphen
    "\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"  # bidi, invisible operators
    "\u2028\u2029\ufeff\ufff0-\ufffb\ud800-\udfff"  # line separators, annotations, surrogates
    "\U000e0000-\U000e007f]"  # invisible tag characters
)
_WORD = re.compile(r" *[^ ]+ *")


def visible(text: str) -> str:
    """`text` with each control and bidi character replaced by its code point, such as <U+001B>.

    Line feeds stay, tabs become four spaces, CRLF becomes a line feed.
    """
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    return _STEERING.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def one_line(text: str) -> str:
    """`visible` on one line: runs of white space become one space."""
    return " ".join(visible(text).split())


def clip(text: str, width: int) -> str:
    """The line cut to `width` columns, with an ellipsis if it was longer."""
    if columns(text) <= width:
        return text
    taken, room = 0, max(width - 1, 0)
    for n, character in enumerate(text):
        taken += columns(character)
        if taken > room:
            return text[:n] + "…"
    return text


def wrap(text: str, width: int, indent: str, taken: int = 0) -> str:
    """`text` wrapped between words to at most `width` columns.

    `taken` columns of the first line are already in use; the other lines start with `indent`. A
    word wider than a line stays whole: it may be a URL to copy.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        room = width - (taken if not lines else columns(indent))
        lines += _broken(line.rstrip(" "), room, width - columns(indent))
    return f"\n{indent}".join(lines)


def _broken(line: str, room: int, later: int) -> list[str]:
    """The line in pieces: the first within `room` columns, the others within `later`."""
    if columns(line) <= room:
        return [line]
    pieces: list[str] = []
    built: list[str] = []
    used = 0  # columns of `built`; recounting them for each word would be quadratic
    for word in _WORD.findall(line):
        if built and used + columns(word.rstrip(" ")) > room:
            pieces.append("".join(built).rstrip(" "))
            built, used, room = [], 0, later
        built.append(word)
        used += columns(word)
    return [*pieces, "".join(built)]


def columns(text: str) -> int:
    """The width of a text in terminal columns."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def aligned(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as aligned lines of safe text, below `head` if it is not empty."""
    cells = [list(head)] if head else []
    cells += [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(columns, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in cells
    ]


def counted(count: int, one: str, many: str) -> str:
    """`1 agent`, `2 agents`."""
    return f"{count} {one if count == 1 else many}"
