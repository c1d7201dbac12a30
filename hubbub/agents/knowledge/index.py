"""Passages in SQLite's full-text search, in memory.

In memory because it is quick to build (a second or two for 10 MB of Markdown), belongs to one
agent, and leaves no copies of documents behind.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

__all__ = [
    "LONGEST",
    "MOST_TERMS",
    "Index",
    "Passage",
    "Row",
    "has_fts5",
    "parse",
    "passages",
    "spaced",
    "title_of",
]


# Splits Markdown into passages that are short enough to be shown whole, each with the headings
# above it. Parses only what determines where passages begin: headings of both kinds, code fences (a
# `#` in them is not a heading), and the front matter, whose title is the top heading.


LONGEST = 1200
"""Maximum characters of a passage."""

_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?:[ \t]+(?P<text>.*))?\Z")
_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*\Z")
_UNDERLINE = re.compile(r" {0,3}(?P<mark>=+|-{2,})[ \t]*\Z")
_NO_PARAGRAPH = re.compile(r" {0,3}(?:[-*+>|]|\d+[.)]|#|\Z)|\t| {4}")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}(?=[^`]*\Z)|~{3,})")
_TITLE = re.compile(r"title:[ \t]*(?P<quote>[\"']?)(?P<text>.+?)(?P=quote)[ \t]*\Z")
_MAX_HEADING = 300
"""Maximum characters of a heading; longer lines are text."""
_MAX_FRONT_MATTER = 200
"""Maximum lines of front matter. If they do not close it, the `---` at the top is a rule."""


class Passage(NamedTuple):
    """A section of a file, or a part of one."""

    heading: str
    """The headings above it, outermost first: `Returns > Damaged goods`."""
    line: int
    """Its first line, from 1."""
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
    """The passages of a file, in order. A heading with nothing below it is also a passage."""
    title, lines = _without_front_matter(text.splitlines())
    above: dict[int, str] = {}
    result: list[Passage] = []
    for section in _sections(lines, title):
        above = {level: name for level, name in above.items() if level < section.level}
        if section.title:
            above[section.level] = section.title
        heading = " > ".join(above[level] for level in sorted(above))
        pieces = [Passage(heading, *piece) for piece in _pieces(section.lines)]
        if not pieces and section.title:
            pieces = [Passage(heading, section.line, section.title)]
        if pieces and result and _is_bare_heading(result[-1], heading):
            result.pop()
        result += pieces
    return result


def _is_bare_heading(passage: Passage, heading: str) -> bool:
    """Whether a passage consists of a heading alone, with `heading` below it."""
    bare = passage.text == passage.heading.rpartition(" > ")[2]
    return bare and f"{heading} > ".startswith(f"{passage.heading} > ")


def title_of(passages: Iterable[Passage]) -> str:
    """The outermost heading of a file, or empty."""
    return next((p.heading.split(" > ")[0] for p in passages if p.heading), "")


def _without_front_matter(lines: Sequence[str]) -> tuple[str, list[_NumberedLine]]:
    """The title from the front matter, and the lines below it."""
    start, title = 0, ""
    if lines and lines[0].rstrip() == "---":
        for n, line in enumerate(lines[1:_MAX_FRONT_MATTER], 1):
            if line.rstrip() in ("---", "..."):
                start = n + 1
                break
        matches = (_TITLE.match(line) for line in lines[1:start])
        title = next((match["text"] for match in matches if match), "")
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
    """The open code fence after a line, and whether the line is code."""
    match = _FENCE.match(line)
    if not fence:
        return (match["fence"], True) if match else ("", False)
    closes = match and match["fence"].startswith(fence) and line.strip() == match["fence"]
    return ("" if closes else fence), True


def _heading(at: _NumberedLine, above: Sequence[_NumberedLine]) -> _Section | None:
    """The heading on a line, or on the line above if this one underlines it."""
    match = _HEADING.match(at.text)
    if match and len(at.text) <= _MAX_HEADING:
        title = _CLOSING.sub("", match["text"] or "").strip()
        return _Section(len(match["marks"]), title, at.no, ())
    under = _UNDERLINE.match(at.text)
    if under is None or not above or _NO_PARAGRAPH.match(above[-1].text):
        return None
    if len(above[-1].text) > _MAX_HEADING:
        return None
    if len(above) > 1 and above[-2].text.strip():
        return None  # a paragraph of several lines with a rule below it
    level = 1 if under["mark"].startswith("=") else 2
    return _Section(level, above[-1].text.strip(), above[-1].no, ())


# Pieces -----------------------------------------------------------------------------------------


def _pieces(lines: Iterable[_NumberedLine]) -> Iterator[tuple[int, str]]:
    """Split lines into pieces of at most `LONGEST` characters, between paragraphs if possible."""
    buffer: list[_NumberedLine] = []
    size = 0
    for line in _short(lines):
        while buffer and size + len(line.text) > LONGEST:
            blanks = [n for n, each in enumerate(buffer) if n and not each.text.strip()]
            cut = blanks[-1] if blanks else len(buffer)
            yield from _joined(buffer[:cut])
            buffer = _without_leading_blanks(buffer[cut:])
            size = sum(len(each.text) + 1 for each in buffer)
        if buffer or line.text.strip():
            buffer.append(line)
            size += len(line.text) + 1
    yield from _joined(buffer)


def _without_leading_blanks(lines: list[_NumberedLine]) -> list[_NumberedLine]:
    start = next((n for n, line in enumerate(lines) if line.text.strip()), len(lines))
    return lines[start:]


def _joined(lines: Sequence[_NumberedLine]) -> Iterator[tuple[int, str]]:
    text = "\n".join(line.text for line in lines).rstrip()
    if text:
        yield lines[0].no, text


def _short(lines: Iterable[_NumberedLine]) -> Iterator[_NumberedLine]:
    """Split lines of more than `LONGEST` characters, between words if possible."""
    for line in lines:
        start = 0
        while len(line.text) - start > LONGEST:
            space = line.text.rfind(" ", start + 1, start + LONGEST)
            end = space if space > 0 else start + LONGEST
            yield _NumberedLine(line.no, line.text[start:end])
            start = end
        yield _NumberedLine(line.no, line.text[start:])


# Translates queries into SQLite FTS5 expressions. Pure; any text is valid. `refund lamp`: passages
# with at least one of the words; more and rarer words rank higher. `"damaged goods"`: only passages
# with these words in this order. `refund*`: words with this prefix.


MOST_TERMS = 48
"""Maximum words and phrases of a query; the rest is ignored."""
_MAX_QUERY = 4000
"""Maximum characters of a query."""
_MIN_PREFIX = 3
"""Minimum letters of a word that the wider search treats as a prefix without a `*`."""

_PART = re.compile(r'"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+)')
# Kana, Han and Hangul are written without spaces, so each character counts as a word.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


class QueryForms(NamedTuple):
    """The exact search for a query, and its fallback."""

    exact: str
    """The query as written; empty if it has no words."""
    wider: str
    """Words with the same prefixes in any order, if `exact` matches nothing."""


class _Term(NamedTuple):
    text: str
    prefix: bool = False

    def __str__(self) -> str:
        return f'"{self.text}"*' if self.prefix else f'"{self.text}"'


def spaced(text: str) -> str:
    """Normalize a text for the index: with spaces between the characters of scripts that use none,
    and accented letters as single characters.
    """
    whole = text if text.isascii() else unicodedata.normalize("NFC", text)
    return _UNSPACED.sub(lambda match: f" {match[0]} ", whole)


def parse(text: str) -> QueryForms:
    """Parse a query."""
    phrases, words = _terms(text)
    exact = _any(words)
    if phrases:
        needed = "(" + " AND ".join(map(str, phrases)) + ")"
        exact = f"{needed} OR ({needed} AND ({exact}))" if words else needed
    single = [word for term in (*phrases, *words) for word in term.text.split()]
    prefixes = [_Term(word, len(word) >= _MIN_PREFIX) for word in single]
    return QueryForms(exact, _any(list(dict.fromkeys(prefixes))[:MOST_TERMS]))


def _any(terms: Sequence[_Term]) -> str:
    return " OR ".join(map(str, terms))


def _terms(text: str) -> tuple[list[_Term], list[_Term]]:
    """The quoted phrases and the words, without duplicates."""
    phrases: dict[_Term, None] = {}
    words: dict[_Term, None] = {}
    for quoted, term in _parts(text):
        (phrases if quoted else words)[term] = None
        if len(phrases) + len(words) == MOST_TERMS:
            break
    return list(phrases), list(words)


def _parts(text: str) -> Iterator[tuple[bool, _Term]]:
    for match in _PART.finditer(text[:_MAX_QUERY]):
        phrase = match["phrase"]
        words = _words(match["word"] if phrase is None else phrase)
        if words:
            is_prefix = phrase is None and match["word"].endswith("*")
            yield phrase is not None, _Term(" ".join(words), is_prefix)


def _words(text: str) -> list[str]:
    """Split a text like the index does, into words of letters and digits."""
    letters = "".join(c if c.isalnum() else " " for c in spaced(text))
    return letters.split()


_SCHEMA = """
CREATE VIRTUAL TABLE passage USING fts5(
    name, heading, body, shown UNINDEXED, file UNINDEXED, line UNINDEXED, path UNINDEXED,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
"""
_WEIGHTS = "2.0, 4.0, 1.0"
"""Weights of file name, headings and text: a search for `returns` should prefer that chapter."""
_FIND = f"""
SELECT file, path, line, coalesce(shown, body), bm25(passage, {_WEIGHTS}) AS score
FROM passage WHERE passage MATCH ? ORDER BY score, file, line, rowid LIMIT ?
"""


class Row(NamedTuple):
    """A matching passage."""

    file: str
    heading: str
    line: int
    text: str
    score: float
    """Lower is better (bm25)."""


@cache
def has_fts5() -> bool:
    """Whether this Python's SQLite has full-text search."""
    db = sqlite3.connect(":memory:")
    try:
        db.execute("CREATE VIRTUAL TABLE passage USING fts5(body)")
    except sqlite3.OperationalError:
        return False
    finally:
        db.close()
    return True


class Index:
    """The passages of files, by file name. Not thread-safe."""

    def __init__(self) -> None:
        # Used by several threads, but only with the owner's lock.
        self._db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._db.close)
        self._db.executescript(_SCHEMA)
        self._rows: dict[str, tuple[int, int]] = {}
        self._next = 1

    def put(self, file: str, passages: Sequence[Passage]) -> None:
        """Replace the passages of a file."""
        self.remove([file])
        self._db.execute("BEGIN")
        self._db.executemany(
            "INSERT INTO passage (rowid, name, heading, body, shown, file, line, path)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (self._row(self._next + n, file, passage) for n, passage in enumerate(passages)),
        )
        self._db.execute("COMMIT")
        self._rows[file] = (self._next, self._next + len(passages))
        self._next += len(passages)

    @staticmethod
    def _row(rowid: int, file: str, passage: Passage) -> tuple[object, ...]:
        body, heading = spaced(passage.text), spaced(passage.heading)
        shown = None if body == passage.text else passage.text
        name = spaced(file.rpartition(".")[0])
        return rowid, name, heading, body, shown, file, passage.line, passage.heading

    def remove(self, files: Iterable[str]) -> None:
        """Remove files; unknown ones are ignored."""
        for file in files:
            first, end = self._rows.pop(file, (0, 0))
            self._db.execute("DELETE FROM passage WHERE rowid >= ? AND rowid < ?", (first, end))

    def find(self, expression: str, limit: int) -> list[Row]:
        """The best passages for an FTS5 expression, best first."""
        rows = self._db.execute(_FIND, (expression, limit))
        return [Row(file, path, line, text, score) for file, path, line, text, score in rows]

    def count(self, expression: str) -> int:
        """The number of passages that match."""
        row = self._db.execute(
            "SELECT count(*) FROM passage WHERE passage MATCH ?", (expression,)
        ).fetchone()
        return int(row[0])
