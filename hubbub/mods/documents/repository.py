"""The tables of the mod `documents`: versions, comments, and what they are found by."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.mods.documents.schemas import Comment, Document, DocumentVersion
from hubbub.mods.fields import time_of
from hubbub.mods.repository import AMONG, Repository, listed
from hubbub.mods.rows import Statement
from hubbub.mods.text_search import SearchHit, SearchQuery, indexable, snippet_of
from hubbub.protocol.codes import ErrorCode

__all__ = [
    "DocumentRepository",
    "DocumentRow",
    "comment_findable",
    "commented",
    "created",
    "findable",
    "resolved",
    "saved",
]

_COLUMNS = "id, thread, title, version, created_by, created_at"
_COMMENT = "id, version, line, author, at, text, resolved_by"


class DocumentRow(NamedTuple):
    """A document without its texts."""

    id: int
    thread: str
    title: str
    version: int
    created_by: str
    created_at: float

    def to_schema(self) -> Document:
        return Document(
            id=f"d{self.id}",
            title=self.title,
            thread_id=self.thread,
            version=self.version,
            created_by=self.created_by,
            created_at=time_of(self.created_at),
        )


class DocumentRepository(Repository):
    async def last(self) -> tuple[int, int]:
        """The highest numbers of documents and of comments."""
        document = await self.value("SELECT coalesce(max(id), 0) FROM documents_document")
        comment = await self.value("SELECT coalesce(max(id), 0) FROM documents_comment")
        return document, comment

    async def document(self, id: int) -> DocumentRow | None:
        sql = f"SELECT {_COLUMNS} FROM documents_document WHERE id = ?"
        return await self.one(DocumentRow, sql, id)

    async def of_threads(
        self, threads: Collection[str], before: int, limit: int
    ) -> list[DocumentRow]:
        """Documents of these threads with lower numbers than `before`, the latest first."""
        sql = (
            f"SELECT {_COLUMNS} FROM documents_document WHERE thread {AMONG} "
            "AND id < ? ORDER BY id DESC LIMIT ?"
        )
        return await self.all(DocumentRow, sql, listed(threads), before, limit)

    async def text(self, row: DocumentRow, version: int) -> str:
        """One version. Raises `OperationError` if there is none."""
        sql = "SELECT text FROM documents_version WHERE document = ? AND version = ?"
        rows = await self._host.rows(sql, row.id, version)
        if not rows:
            raise OperationError(
                ErrorCode.NOT_FOUND,
                f"d{row.id} has no version {version}; its latest is {row.version}",
            )
        return zlib.decompress(rows[0][0]).decode()

    async def versions(self, row: DocumentRow, before: int, limit: int) -> list[DocumentVersion]:
        """Versions before this one, the latest first."""
        sql = (
            "SELECT version, base, author, at, note, lines FROM documents_version "
            "WHERE document = ? AND version < ? ORDER BY version DESC LIMIT ?"
        )
        return await self.all(_version_of, sql, row.id, before, limit)

    async def comment(self, row: DocumentRow, id: int) -> Comment | None:
        sql = f"SELECT {_COMMENT} FROM documents_comment WHERE document = ? AND id = ?"
        return await self.one(_comment, sql, row.id, id)

    async def comments(
        self, row: DocumentRow, after: int, limit: int, *, resolved: bool
    ) -> list[Comment]:
        """Comments after this one, oldest first; with `resolved` those that are done with, too."""
        sql = (
            f"SELECT {_COMMENT} FROM documents_comment WHERE document = ? AND id > ? "
            "AND (resolved_by IS NULL OR ?) ORDER BY id LIMIT ?"
        )
        return await self.all(_comment, sql, row.id, after, int(resolved), limit)

    # Full text ---------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        """Make documents findable that were written when none were. One at a time: texts may be
        large. Raises `StoreUnavailable`; the next start goes on."""
        last = 0
        while rows := await self._host.rows(_NOT_FINDABLE, last):
            row = DocumentRow(*rows[0])
            text = await self.text(row, row.version)
            values = (row.id, indexable(row.title), indexable(text))
            await self._host.keep([Statement(_FINDABLE_FIRST, values)])
            last = row.id

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        """`Searchable.found`. Who has written the latest version, and when, counts."""
        more, values = search.conditions("v.author", "v.at")
        sql = _FOUND.format(among=AMONG, more=more)
        where = search.words.match, listed(search.threads), *values
        rows = await self._host.rows(sql, *where, search.limit, search.skip)
        return [
            SearchHit(
                kind="documents",
                id=f"d{row[0]}",
                thread=row[1],
                by=by,
                at=at,
                snippet=await snippet_of(search.words, await self._text(DocumentRow(*row), place)),
                title=row[2],
                score=-score,
            )
            for score, place, by, at, *row in rows
        ]

    async def _text(self, row: DocumentRow, place: int) -> str:
        """The text where the words were found."""
        if place > 0:
            return await self.text(row, row.version)
        comment = await self.comment(row, -place)
        return "" if comment is None else comment.text


def created(row: DocumentRow, text: str) -> Sequence[Statement]:
    return [
        Statement("INSERT INTO documents_document VALUES (?, ?, ?, ?, ?, ?)", row),
        _version(row, 0, row.created_by, row.created_at, "created", text),
    ]


def saved(
    row: DocumentRow, base: int, author: str, at: float, note: str, text: str
) -> Sequence[Statement]:
    """The document's next version, if the one before is still the latest."""
    sql = "UPDATE documents_document SET version = ? WHERE id = ? AND version = ?"
    moved = Statement(sql, (row.version, row.id, row.version - 1), rows=1)
    return [moved, _version(row, base, author, at, note, text)]


def _version(
    row: DocumentRow, base: int, author: str, at: float, note: str, text: str
) -> Statement:
    packed = zlib.compress(text.encode())
    values = (row.id, row.version, base, author, at, note, text.count("\n") + 1, packed)
    return Statement("INSERT INTO documents_version VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def commented(row: DocumentRow, comment: Comment, at: float) -> Sequence[Statement]:
    values = (
        comment.id, row.id, comment.version, comment.line, comment.author, at, comment.text
    )  # fmt: skip
    return [
        Statement(
            "INSERT INTO documents_comment (id, document, version, line, author, at, text) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )
    ]


def resolved(comment: int, by: str) -> Sequence[Statement]:
    sql = "UPDATE documents_comment SET resolved_by = ? WHERE id = ? AND resolved_by IS NULL"
    return [Statement(sql, (by, comment), rows=1)]


def _version_of(
    version: int, base: int, author: str, at: float, note: str, lines: int
) -> DocumentVersion:
    return DocumentVersion(
        version=version, base=base, author=author, at=time_of(at), note=note, lines=lines
    )


def _comment(
    id: int, version: int, line: int | None, author: str, at: float, text: str, by: str | None
) -> Comment:
    return Comment(
        id=id, version=version, line=line, author=author, at=time_of(at), text=text, resolved_by=by
    )


_FINDABLE = "INSERT OR REPLACE INTO documents_found (rowid, title, text) VALUES (?, ?, ?)"
_FINDABLE_FIRST = """
INSERT INTO documents_found (rowid, title, text)
SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM documents_found WHERE rowid = ?1)
"""
_NOT_FINDABLE = f"""
SELECT {_COLUMNS} FROM documents_document
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
WHERE d.thread {among}{more}
GROUP BY d.id ORDER BY score, d.id DESC LIMIT ? OFFSET ?
"""


def findable(row: DocumentRow, text: str) -> Statement:
    """The document with its latest text."""
    return Statement(_FINDABLE, (row.id, indexable(row.title), indexable(text)))


def comment_findable(comment: int, text: str) -> Statement:
    return Statement(_FINDABLE, (-comment, "", indexable(text)))
