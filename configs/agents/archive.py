"""Full-text search over pages and messages that respects read permissions.

A passage is returned only if everyone who will see the answer can read it: messages between two
people are found only by those two, in their own thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from markdown_pages import words_of

__all__ = ["PUBLIC", "Archive", "Hit", "readable"]

PUBLIC = "*"
"""The place of passages that everyone can read."""
MOST_WORDS = 20
"""The number of words of a question that are searched for."""
MOST, HALF = 0.7, 0.5
"""The share of a question's words that a page (0.7) or a message (0.5) must contain to be an
answer. A paragraph with fewer is about another topic; messages are short."""


@dataclass(frozen=True)
class Hit:
    """A search result: its `source`, and the best `snippet` of its text."""

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
        """Index a passage. A passage with an indexed `key` changes nothing."""
        if key in self._known:
            return
        self._known.add(key)
        self._db.execute(
            "INSERT INTO passage(title, text, source, place, sender, key) VALUES (?,?,?,?,?,?)",
            (title, text, source, place, sender, key),
        )

    def senders(self) -> set[str]:
        """The senders of the archived messages."""
        rows = self._db.execute("SELECT DISTINCT sender FROM passage WHERE sender <> ''")
        return {str(row[0]) for row in rows}

    def search(
        self,
        question: str,
        places: Collection[str],
        sender: str | None = None,
        *,
        without: Collection[str] = (),
        limit: int = 3,
    ) -> list[Hit]:
        """The best passages of `places` and PUBLIC, best first.

        A passage must have most of the question's words, and nearly as many as the best passage.
        Among passages with equally many, the one with the closest title comes first. `without`:
        keys to exclude.
        """
        spoken = set(words_of(question)) - set(words_of(sender or ""))
        words = sorted(spoken)[:MOST_WORDS]
        if not words:
            return []
        rows = [row for row in self._matches(words, places, sender) if row[1] not in without]
        having = [self._rows_with(word) for word in words]
        shares = {row[0]: sum(row[0] in ids for ids in having) / len(words) for row in rows}
        best = [r for r in rows if shares[r[0]] >= (HALF if r[5] else MOST)]
        least = 0.75 * max((shares[r[0]] for r in best), default=0.0)
        best = [r for r in best if shares[r[0]] >= least]
        # stable sort: ties stay in order of rank
        best.sort(key=lambda row: (-shares[row[0]], -_likeness(spoken, row[2])))
        hits = {s.strip(): Hit(source, s.strip()) for _, _, _, source, s, _ in reversed(best)}
        return [*reversed(hits.values())][:limit]  # without repeated snippets

    def _matches(
        self, words: Sequence[str], places: Collection[str], sender: str | None
    ) -> list[tuple[int, str, str, str, str, str]]:
        """Row, key, title, source, snippet and sender of passages with any of the words, ranked."""
        allowed = [PUBLIC, *places]
        return self._db.execute(
            "SELECT rowid, key, title, source, snippet(passage, 1, '', '', ' … ', 32), sender "
            f"FROM passage WHERE passage MATCH ? AND place IN ({','.join('?' * len(allowed))}) "
            "AND (? IS NULL OR sender = ?) ORDER BY bm25(passage, 8.0, 1.0) LIMIT 50",
            (" OR ".join(map(_quoted, words)), *allowed, sender, sender),
        ).fetchall()

    def _rows_with(self, word: str) -> set[int]:
        query = "SELECT rowid FROM passage WHERE passage MATCH ?"
        return {int(row[0]) for row in self._db.execute(query, (_quoted(word),))}


def _likeness(spoken: set[str], title: str) -> float:
    """The similarity of a title to the question, from 0 to 1."""
    named = set(words_of(title))
    return len(spoken & named) / len(spoken | named)


def _quoted(word: str) -> str:
    """Quote a word, so that no input is interpreted as FTS5 syntax."""
    return f'"{word}"'


def readable(
    places: Iterable[str], audience: Collection[str], members: Mapping[str, Collection[str]]
) -> list[str]:
    """The `places` that everyone in `audience` can read.

    `members` maps a place to its readers; a place that is not in it has none.
    """
    return [place for place in places if set(audience) <= set(members.get(place, ()))]
