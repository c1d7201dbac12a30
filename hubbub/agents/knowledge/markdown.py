"""Splits Markdown into passages, short enough to be shown whole, each with the headings above it.

Pure. It parses only what determines where passages begin: headings of both kinds, code fences (a
`#` in them is no heading), and the front matter, whose title counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

__all__ = ["LONGEST", "Passage", "passages", "title_of"]

LONGEST = 1200
"""Maximum characters of a passage."""

_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?:[ \t]+(?P<text>.*))?\Z")
_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*\Z")
_UNDERLINE = re.compile(r" {0,3}(?P<mark>=+|-{2,})[ \t]*\Z")
_NO_PARAGRAPH = re.compile(r" {0,3}(?:[-*+>|]|\d+[.)]|#|\Z)|\t| {4}")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}(?=[^`]*\Z)|~{3,})")
_TITLE = re.compile(r"title:[ \t]*(?P<quote>[\"']?)(?P<text>.+?)(?P=quote)[ \t]*\Z")
_LONGEST_HEADING = 300
"""Characters of a heading; longer lines are text."""
_MOST_FRONT_MATTER = 200
"""Lines after which a `---` at the top was a rule, not the start of a front matter."""


class Passage(NamedTuple):
    """A piece of a file."""

    heading: str
    """The headings above it, outermost first: `Returns > Damaged goods`."""
    line: int
    """Where it begins, from 1."""
    text: str


class _NumberedLine(NamedTuple):
    no: int
    text: str


class _Section(NamedTuple):
    """The lines between one heading and the next."""

    level: int
    title: str
    line: int
    lines: Sequence[_NumberedLine]


def passages(text: str) -> list[Passage]:
    """The passages of a file, in order. A heading with nothing below it is a passage, too."""
    title, lines = _without_front_matter(text.splitlines())
    above: dict[int, str] = {}
    found: list[Passage] = []
    for section in _sections(lines, title):
        above = {level: name for level, name in above.items() if level < section.level}
        if section.title:
            above[section.level] = section.title
        heading = " > ".join(above[level] for level in sorted(above))
        pieces = [Passage(heading, *piece) for piece in _pieces(section.lines)]
        if not pieces and section.title:
            pieces = [Passage(heading, section.line, section.title)]
        if pieces and found and _only_heads(found[-1], heading):
            found.pop()
        found += pieces
    return found


def _only_heads(passage: Passage, heading: str) -> bool:
    """Whether a passage is only a heading, of which `heading` is a subheading."""
    bare = passage.text == passage.heading.rpartition(" > ")[2]
    return bare and f"{heading} > ".startswith(f"{passage.heading} > ")


def title_of(found: Iterable[Passage]) -> str:
    """The outermost heading of a file, or empty."""
    return next((p.heading.split(" > ")[0] for p in found if p.heading), "")


def _without_front_matter(lines: Sequence[str]) -> tuple[str, list[_NumberedLine]]:
    """The title from the front matter, and the lines below it."""
    start, title = 0, ""
    if lines and lines[0].rstrip() == "---":
        for n, line in enumerate(lines[1:_MOST_FRONT_MATTER], 1):
            if line.rstrip() in ("---", "..."):
                start = n + 1
                break
        found = (_TITLE.match(line) for line in lines[1:start])
        title = next((match["text"] for match in found if match), "")
    return title, [_NumberedLine(n, line) for n, line in enumerate(lines[start:], start + 1)]


def _sections(lines: Sequence[_NumberedLine], title: str) -> Iterator[_Section]:
    """The title from the front matter counts as a heading above all others."""
    level, line, below = 0, 1, list[_NumberedLine]()
    fence = ""
    for at in lines:
        fence, fenced = _fenced(at.text, fence)
        heading = None if fenced else _heading(at, below)
        if heading is None:
            below.append(at)
            continue
        if heading.line < at.no:  # the underlined line is the heading
            below.pop()
        yield _Section(level, title, line, below)
        (level, title, line), below = heading[:3], []
    yield _Section(level, title, line, below)


def _fenced(line: str, fence: str) -> tuple[str, bool]:
    """The code fence that is open after a line, and whether the line is code."""
    match = _FENCE.match(line)
    if not fence:
        return (match["fence"], True) if match else ("", False)
    closes = match and match["fence"].startswith(fence) and line.strip() == match["fence"]
    return ("" if closes else fence), True


def _heading(at: _NumberedLine, above: Sequence[_NumberedLine]) -> _Section | None:
    """The heading that a line is, or that it makes of the line above it."""
    match = _HEADING.match(at.text)
    if match and len(at.text) <= _LONGEST_HEADING:
        title = _CLOSING.sub("", match["text"] or "").strip()
        return _Section(len(match["marks"]), title, at.no, ())
    under = _UNDERLINE.match(at.text)
    if under is None or not above or _NO_PARAGRAPH.match(above[-1].text):
        return None
    if len(above[-1].text) > _LONGEST_HEADING:
        return None
    if len(above) > 1 and above[-2].text.strip():
        return None  # a paragraph of several lines with a rule below it
    level = 1 if under["mark"].startswith("=") else 2
    return _Section(level, above[-1].text.strip(), above[-1].no, ())


# Pieces -----------------------------------------------------------------------------------------


def _pieces(lines: Iterable[_NumberedLine]) -> Iterator[tuple[int, str]]:
    """The lines in pieces of at most `LONGEST` characters, split between paragraphs if possible."""
    held: list[_NumberedLine] = []
    size = 0
    for line in _short(lines):
        while held and size + len(line.text) > LONGEST:
            blanks = [n for n, one in enumerate(held) if n and not one.text.strip()]
            cut = blanks[-1] if blanks else len(held)
            yield from _joined(held[:cut])
            held = _begun(held[cut:])
            size = sum(len(one.text) + 1 for one in held)
        if held or line.text.strip():
            held.append(line)
            size += len(line.text) + 1
    yield from _joined(held)


def _begun(lines: list[_NumberedLine]) -> list[_NumberedLine]:
    """Without the empty lines at the beginning."""
    start = next((n for n, line in enumerate(lines) if line.text.strip()), len(lines))
    return lines[start:]


def _joined(lines: Sequence[_NumberedLine]) -> Iterator[tuple[int, str]]:
    text = "\n".join(line.text for line in lines).rstrip()
    if text:
        yield lines[0].no, text


def _short(lines: Iterable[_NumberedLine]) -> Iterator[_NumberedLine]:
    """Lines of at most `LONGEST` characters: longer ones are split between words."""
    for line in lines:
        start = 0
        while len(line.text) - start > LONGEST:
            space = line.text.rfind(" ", start + 1, start + LONGEST)
            end = space if space > 0 else start + LONGEST
            yield _NumberedLine(line.no, line.text[start:end])
            start = end
        yield _NumberedLine(line.no, line.text[start:])
