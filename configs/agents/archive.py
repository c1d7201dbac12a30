"""Full-text search over pages and messages, with a memory of who may read what.

A passage is shown only where everybody who will see the answer may read it: what two people wrote
to each other is found by those two in their own thread, and by nobody else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from markdown_pages import words_of

__all__ = ["PUBLIC", "Archive", "Hit", "readable"]

PUBLIC = "*"
"""The place of what everybody may read."""
MOST_WORDS = 20
"""Words of a question that are searched for."""
MOST, HALF = 0.7, 0.5
"""The shares of a question's words that a page and a message must have to be an answer: a paragraph
with fewer is about something else, and what people write is short."""


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
        self,
        question: str,
        places: Collection[str],
        sender: str | None = None,
        *,
        without: Collection[str] = (),
        limit: int = 3,
    ) -> list[Hit]:
        """The best passages of `places` (what is PUBLIC always counts), best first.

        A passage must have most of the question's words, and nearly as many as the best. Of those
        that have as many, the one whose title is closest comes first. `without`: keys that are
        left out.
        """
        spoken = set(words_of(question)) - set(words_of(sender or ""))
        words = sorted(spoken)[:MOST_WORDS]
        if not words:
            return []
        rows = [row for row in self._matches(words, places, sender) if row[1] not in without]
        having = [self._rows_with(word) for word in words]
        shares = {row[0]: sum(row[0] in found for found in having) / len(words) for row in rows}
        best = [r for r in rows if shares[r[0]] >= (HALF if r[5] else MOST)]
        least = 0.75 * max((shares[r[0]] for r in best), default=0.0)
        best = [r for r in best if shares[r[0]] >= least]
        # stable: those that are equal in both stay in order of rank
        best.sort(key=lambda row: (-shares[row[0]], -_likeness(spoken, row[2])))
        hits = {s.strip(): Hit(source, s.strip()) for _, _, _, source, s, _ in reversed(best)}
        return [*reversed(hits.values())][:limit]  # what was said twice is found once

    def _matches(
        self, words: Sequence[str], places: Collection[str], sender: str | None
    ) -> list[tuple[int, str, str, str, str, str]]:
        """Row, key, title, source, snippet and sender of all that has any of the words, by rank."""
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
    """How much a title says just what was asked, from 0 to 1."""
    named = set(words_of(title))
    return len(spoken & named) / len(spoken | named)


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
