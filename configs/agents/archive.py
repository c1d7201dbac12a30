"""Full-text search over pages and messages, with a memory of who may read what.

A passage is shown only where everybody who will see the answer may read it: what two people wrote
to each other is found by those two in their own thread, and by nobody else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from markdown_pages import words_of

__all__ = ["PUBLIC", "Archive", "Hit", "readable"]

PUBLIC = "*"
"""The place of what everybody may read."""
MOST_WORDS = 20
"""Words of a question that are searched for."""


@dataclass(frozen=True)
class Hit:
    """A place that was found: `source` says where, `snippet` is the best piece of its text."""

    source: str
    snippet: str


class Archive:
    """An index in memory. `place` is a thread's id, or `PUBLIC`."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE passage USING fts5(title, text, source UNINDEXED, "
            "place UNINDEXED, sender UNINDEXED, key UNINDEXED, tokenize='porter unicode61')"
        )
        self._known: set[str] = set()

    def close(self) -> None:
        self._db.close()

    def add(
        self, key: str, place: str, source: str, text: str, title: str = "", sender: str = ""
    ) -> None:
        """Take in a passage; one with a `key` that is known already changes nothing."""
        if key in self._known:
            return
        self._known.add(key)
        self._db.execute(
            "INSERT INTO passage(title, text, source, place, sender, key) VALUES (?,?,?,?,?,?)",
            (title, text, source, place, sender, key),
        )

    def senders(self) -> set[str]:
        """Whose messages are in the archive."""
        rows = self._db.execute("SELECT DISTINCT sender FROM passage WHERE sender <> ''")
        return {str(row[0]) for row in rows}

    def search(
        self, question: str, places: Collection[str], sender: str | None = None, limit: int = 3
    ) -> list[Hit]:
        """The best passages of `places` (what is PUBLIC always counts), best first.

        A passage must have at least half of the question's words, and nearly as many as the best.
        """
        words = sorted(set(words_of(question)))[:MOST_WORDS]
        if not words:
            return []
        allowed = [PUBLIC, *places]
        rows = self._db.execute(
            "SELECT rowid, source, snippet(passage, 1, '', '', ' … ', 32) FROM passage "
            f"WHERE passage MATCH ? AND place IN ({','.join('?' * len(allowed))}) "
            "AND (? IS NULL OR sender = ?) ORDER BY bm25(passage, 2.0, 1.0) LIMIT 50",
            (" OR ".join(map(_quoted, words)), *allowed, sender, sender),
        ).fetchall()
        having = [self._rows_with(word) for word in words]
        shares = {row[0]: sum(row[0] in found for found in having) / len(words) for row in rows}
        least = max(0.5, 0.75 * max(shares.values(), default=0.0))
        rows.sort(key=lambda row: -shares[row[0]])  # stable: equal shares stay in order of rank
        best = [row for row in rows if shares[row[0]] >= least][:limit]
        return [Hit(str(source), str(snippet).strip()) for _, source, snippet in best]

    def _rows_with(self, word: str) -> set[int]:
        query = "SELECT rowid FROM passage WHERE passage MATCH ?"
        return {int(row[0]) for row in self._db.execute(query, (_quoted(word),))}


def _quoted(word: str) -> str:
    """Quoted, a word is only ever a word: nothing a person types is FTS5 syntax."""
    return f'"{word}"'


def readable(
    places: Iterable[str], audience: Collection[str], members: Mapping[str, Collection[str]]
) -> list[str]:
    """Those of `places` that everybody in `audience` may read.

    `members` says who reads a place; a place that is not in it is read by nobody.
    """
    return [place for place in places if set(audience) <= set(members.get(place, ()))]
