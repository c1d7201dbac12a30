"""The tables of the mod `documents`: what is read from them, and the statements that write them."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.mods.documents.words import Comment, Document, DocumentVersion
from hubbub.mods.host import Host
from hubbub.mods.rows import Statement, marks, parts
from hubbub.mods.times import time_of
from hubbub.protocol.codes import ErrorCode

__all__ = ["Row", "Shelf", "commented", "created", "resolved", "saved"]

_COLUMNS = "id, thread, title, version, created_by, created_at"
_COMMENT = "id, version, line, author, at, text, resolved_by"


class Row(NamedTuple):
    """A document without its texts."""

    id: int
    thread: str
    title: str
    version: int
    created_by: str
    created_at: float

    def told(self) -> Document:
        return Document(
            id=f"d{self.id}",
            title=self.title,
            thread_id=self.thread,
            version=self.version,
            created_by=self.created_by,
            created_at=time_of(self.created_at),
        )


class Shelf:
    """All documents of a network, whoever may read them."""

    def __init__(self, host: Host):
        self._host = host

    async def last(self) -> tuple[int, int]:
        """The highest numbers of documents and of comments."""
        ((document,),) = await self._host.rows(
            "SELECT coalesce(max(id), 0) FROM documents_document"
        )
        ((comment,),) = await self._host.rows("SELECT coalesce(max(id), 0) FROM documents_comment")
        return document, comment

    async def document(self, id: int) -> Row | None:
        sql = f"SELECT {_COLUMNS} FROM documents_document WHERE id = ?"
        rows = await self._host.rows(sql, id)
        return Row(*rows[0]) if rows else None

    async def of_threads(self, threads: Collection[str], before: int, limit: int) -> list[Row]:
        """Documents of these threads with lower numbers than `before`, the latest first."""
        found = list[Row]()
        for names in parts(sorted(threads)):
            sql = (
                f"SELECT {_COLUMNS} FROM documents_document WHERE thread IN ({marks(names)}) "
                "AND id < ? ORDER BY id DESC LIMIT ?"
            )
            found += [Row(*row) for row in await self._host.rows(sql, *names, before, limit)]
        return sorted(found, reverse=True)[:limit]

    async def text(self, row: Row, version: int) -> str:
        """One version. Raises `OperationError` if there is none."""
        sql = "SELECT text FROM documents_version WHERE document = ? AND version = ?"
        rows = await self._host.rows(sql, row.id, version)
        if not rows:
            raise OperationError(
                ErrorCode.NOT_FOUND,
                f"d{row.id} has no version {version}; its latest is {row.version}",
            )
        return zlib.decompress(rows[0][0]).decode()

    async def versions(self, row: Row, before: int, limit: int) -> list[DocumentVersion]:
        """Versions before this one, the latest first."""
        sql = (
            "SELECT version, base, author, at, note, lines FROM documents_version "
            "WHERE document = ? AND version < ? ORDER BY version DESC LIMIT ?"
        )
        return [
            DocumentVersion(
                version=version, base=base, author=author, at=time_of(at), note=note, lines=lines
            )
            for version, base, author, at, note, lines in await self._host.rows(
                sql, row.id, before, limit
            )
        ]

    async def comment(self, row: Row, id: int) -> Comment | None:
        sql = f"SELECT {_COMMENT} FROM documents_comment WHERE document = ? AND id = ?"
        rows = await self._host.rows(sql, row.id, id)
        return _comment(*rows[0]) if rows else None

    async def comments(self, row: Row, after: int, limit: int, *, resolved: bool) -> list[Comment]:
        """Comments after this one, oldest first; with `resolved` those that are done with, too."""
        sql = (
            f"SELECT {_COMMENT} FROM documents_comment WHERE document = ? AND id > ? "
            "AND (resolved_by IS NULL OR ?) ORDER BY id LIMIT ?"
        )
        rows = await self._host.rows(sql, row.id, after, int(resolved), limit)
        return [_comment(*found) for found in rows]


def created(row: Row, text: str) -> Sequence[Statement]:
    return [
        Statement("INSERT INTO documents_document VALUES (?, ?, ?, ?, ?, ?)", row),
        _version(row, 0, row.created_by, row.created_at, "created", text),
    ]


def saved(row: Row, base: int, author: str, at: float, note: str, text: str) -> Sequence[Statement]:
    """The document's next version, if the one before is still the latest."""
    sql = "UPDATE documents_document SET version = ? WHERE id = ? AND version = ?"
    moved = Statement(sql, (row.version, row.id, row.version - 1), rows=1)
    return [moved, _version(row, base, author, at, note, text)]


def _version(row: Row, base: int, author: str, at: float, note: str, text: str) -> Statement:
    packed = zlib.compress(text.encode())
    values = (row.id, row.version, base, author, at, note, text.count("\n") + 1, packed)
    return Statement("INSERT INTO documents_version VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def commented(row: Row, comment: Comment, at: float) -> Sequence[Statement]:
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


def _comment(
    id: int, version: int, line: int | None, author: str, at: float, text: str, by: str | None
) -> Comment:
    return Comment(
        id=id,
        version=version,
        line=line,
        author=author,
        at=time_of(at),
        text=text,
        resolved_by=by,
    )
