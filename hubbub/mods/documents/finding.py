"""Documents by what they say: their titles, latest texts and comments."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hubbub.mods.documents.shelf import Row, Shelf
from hubbub.mods.host import Host
from hubbub.mods.rows import Statement
from hubbub.mods.searching import Hit, Search, indexable, snippet_of

__all__ = ["Finding", "comment_findable", "findable"]

_FINDABLE = "INSERT OR REPLACE INTO documents_found (rowid, title, text) VALUES (?, ?, ?)"
_FINDABLE_FIRST = """
INSERT INTO documents_found (rowid, title, text)
SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM documents_found WHERE rowid = ?1)
"""
_NOT_FINDABLE = """
SELECT id, thread, title, version, created_by, created_at FROM documents_document
WHERE id > ? AND id NOT IN (SELECT rowid FROM documents_found) ORDER BY id LIMIT 1
"""

# A document counts once, by the best of its text and its comments.
_FOUND = """
WITH f AS MATERIALIZED (
    SELECT rowid AS r, bm25(documents_found, 4.0, 1.0) AS score
    FROM documents_found WHERE documents_found MATCH ?
)
SELECT min(f.score) AS score, f.r, v.author, v.at,
       d.id, d.thread, d.title, d.version, d.created_by, d.created_at
FROM f LEFT JOIN documents_comment AS c ON c.id = -f.r
JOIN documents_document AS d ON d.id = coalesce(c.document, f.r)
JOIN documents_version AS v ON v.document = d.id AND v.version = d.version
WHERE d.thread IN (SELECT value FROM json_each(?)){more}
GROUP BY d.id ORDER BY score, d.id DESC LIMIT ? OFFSET ?
"""


def findable(row: Row, text: str) -> Statement:
    """The document with its latest text."""
    return Statement(_FINDABLE, (row.id, indexable(row.title), indexable(text)))


def comment_findable(comment: int, text: str) -> Statement:
    return Statement(_FINDABLE, (-comment, "", indexable(text)))


class Finding:
    """Finds documents by their words."""

    def __init__(self, host: Host, shelf: Shelf):
        self._host, self._shelf = host, shelf

    async def catch_up(self) -> None:
        """Make documents findable that were written when none were. One at a time: texts may be
        large. Raises `StoreUnavailable`; the next start goes on."""
        last = 0
        while rows := await self._host.rows(_NOT_FINDABLE, last):
            row = Row(*rows[0])
            text = await self._shelf.text(row, row.version)
            values = (row.id, indexable(row.title), indexable(text))
            await self._host.keep([Statement(_FINDABLE_FIRST, values)])
            last = row.id

    async def found(self, search: Search) -> Sequence[Hit]:
        """`Searchable.found`. Who has written the latest version, and when, counts."""
        more, values = search.conditions("v.author", "v.at")
        match, threads = search.words.match, json.dumps(list(search.threads))
        rows = await self._host.rows(
            _FOUND.format(more=more), match, threads, *values, search.limit, search.skip
        )
        return [
            Hit(
                kind="documents",
                id=f"d{row[0]}",
                thread=row[1],
                by=by,
                at=at,
                snippet=await snippet_of(search.words, await self._text(Row(*row), place)),
                title=row[2],
                score=-score,
            )
            for score, place, by, at, *row in rows
        ]

    async def _text(self, row: Row, place: int) -> str:
        """The text where the words were found."""
        if place > 0:
            return await self._shelf.text(row, row.version)
        comment = await self._shelf.comment(row, -place)
        return "" if comment is None else comment.text
