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

from hubbub.agents.knowledge.markdown import Passage

__all__ = ["MOST_TERMS", "Index", "QueryForms", "Row", "has_fts5", "parse", "spaced"]

# Search texts as expressions of SQLite's FTS5. Pure: any text is valid. `refund lamp`: passages
# with one of the words; more and rarer words rank higher. `"damaged goods"`: only passages with
# these words in this order. `refund*`: words with this prefix.


MOST_TERMS = 48
"""Words and phrases of a query; the rest is ignored."""
_MOST_TEXT = 4000
"""Characters of a query."""
_SHORTEST_BEGINNING = 3
"""Minimum letters of a word that is also tried as a prefix without a `*`."""

_PART = re.compile(r'"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+)')
# Kana, Han and Hangul: written without spaces, so each character counts as a word.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


class QueryForms(NamedTuple):
    """The two ways to search for a text."""

    exact: str
    """As written. Empty: it has no word."""
    wider: str
    """If that finds nothing: words with the same beginnings, in any order."""


class _Term(NamedTuple):
    text: str
    prefix: bool = False

    def __str__(self) -> str:
        return f'"{self.text}"*' if self.prefix else f'"{self.text}"'


def spaced(text: str) -> str:
    """The text as it is indexed: spaces between the characters of scripts without spaces, and
    letters with accents as single characters.
    """
    whole = text if text.isascii() else unicodedata.normalize("NFC", text)
    return _UNSPACED.sub(lambda match: f" {match[0]} ", whole)


def parse(text: str) -> QueryForms:
    """Parse a search text."""
    phrases, words = _terms(text)
    exact = _any(words)
    if phrases:
        needed = "(" + " AND ".join(map(str, phrases)) + ")"
        exact = f"{needed} OR ({needed} AND ({exact}))" if words else needed
    single = [word for term in (*phrases, *words) for word in term.text.split()]
    begun = [_Term(word, len(word) >= _SHORTEST_BEGINNING) for word in single]
    return QueryForms(exact, _any(list(dict.fromkeys(begun))[:MOST_TERMS]))


def _any(terms: Sequence[_Term]) -> str:
    return " OR ".join(map(str, terms))


def _terms(text: str) -> tuple[list[_Term], list[_Term]]:
    """The phrases in quotes, and the words, each once."""
    phrases: dict[_Term, None] = {}
    words: dict[_Term, None] = {}
    for quoted, term in _parts(text):
        (phrases if quoted else words)[term] = None
        if len(phrases) + len(words) == MOST_TERMS:
            break
    return list(phrases), list(words)


def _parts(text: str) -> Iterator[tuple[bool, _Term]]:
    for match in _PART.finditer(text[:_MOST_TEXT]):
        phrase = match["phrase"]
        words = _words(match["word"] if phrase is None else phrase)
        if words:
            begun = phrase is None and match["word"].endswith("*")
            yield phrase is not None, _Term(" ".join(words), begun)


def _words(text: str) -> list[str]:
    """The words of a text as the index splits it: letters and digits."""
    letters = "".join(c if c.isalnum() else " " for c in spaced(text))
    return letters.split()


_SCHEMA = """
CREATE VIRTUAL TABLE passage USING fts5(
    name, heading, body, shown UNINDEXED, file UNINDEXED, line UNINDEXED, path UNINDEXED,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
"""
_WEIGHTS = "2.0, 4.0, 1.0"
"""Of the file's name, the headings and the text: a search for `returns` means the chapter."""
_FIND = f"""
SELECT file, path, line, coalesce(shown, body), bm25(passage, {_WEIGHTS}) AS score
FROM passage WHERE passage MATCH ? ORDER BY score, file, line, rowid LIMIT ?
"""


class Row(NamedTuple):
    """A passage that was found."""

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
        # Used from several threads, but under the owner's lock.
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
        found = self._db.execute(
            "SELECT count(*) FROM passage WHERE passage MATCH ?", (expression,)
        ).fetchone()
        return int(found[0])
