"""Passages in SQLite's full-text search, in memory.

In memory because it is quick to make (10 MB of Markdown a second or two), belongs to one agent,
and leaves no copy of anybody's documents behind.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from hubbub.agents.knowledge.markdown import Passage
from hubbub.agents.knowledge.query import spaced

__all__ = ["Index", "Row", "has_fts5"]

_SCHEMA = """
CREATE VIRTUAL TABLE passage USING fts5(
    name, heading, body, shown UNINDEXED, file UNINDEXED, line UNINDEXED, path UNINDEXED,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
"""
_WEIGHTS = "2.0, 4.0, 1.0"
"""Of the file's name, the headings and the text: who looks for `returns` wants the chapter."""
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
    """Whether this Python's SQLite can search text."""
    db = sqlite3.connect(":memory:")
    try:
        db.execute("CREATE VIRTUAL TABLE passage USING fts5(body)")
    except sqlite3.OperationalError:
        return False
    finally:
        db.close()
    return True


class Index:
    """The passages of files, by the files' names. One thread at a time may use it."""

    def __init__(self) -> None:
        # Whichever thread searches uses it, under the lock of the one who owns it.
        self._db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._db.close)
        self._db.executescript(_SCHEMA)
        self._rows: dict[str, tuple[int, int]] = {}
        self._next = 1

    def put(self, file: str, passages: Sequence[Passage]) -> None:
        """Let these be the passages of a file."""
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
        """Forget files; unknown ones do not matter."""
        for file in files:
            first, end = self._rows.pop(file, (0, 0))
            self._db.execute("DELETE FROM passage WHERE rowid >= ? AND rowid < ?", (first, end))

    def find(self, expression: str, limit: int) -> list[Row]:
        """The best passages for an expression of FTS5, the best first."""
        rows = self._db.execute(_FIND, (expression, limit))
        return [Row(file, path, line, text, score) for file, path, line, text, score in rows]

    def count(self, expression: str) -> int:
        """How many passages there are for it."""
        found = self._db.execute(
            "SELECT count(*) FROM passage WHERE passage MATCH ?", (expression,)
        ).fetchone()
        return int(found[0])
