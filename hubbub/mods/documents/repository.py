"""The tables of the mod `documents`: versions, comments, and what they are found by."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence

from hubbub.mods.documents.schemas import Comment, Document, DocumentVersion
from hubbub.mods.fields import number_of
from hubbub.mods.refusals import not_found
from hubbub.mods.repository import (
    AMONG,
    Repository,
    columns,
    from_row,
    insert,
    listed,
    update,
)
from hubbub.mods.rows import Statement
from hubbub.mods.text_search import SearchHit, SearchQuery, indexable, snippet_of

__all__ = ["DocumentRepository", "commented", "created", "resolved", "saved"]

_DOCUMENTS = "SELECT {} FROM documents_document WHERE".format(
    columns(Document, id="'d' || id", thread_id="thread")
)
_COMMENTS = f"SELECT {columns(Comment)} FROM documents_comment WHERE document = ?"
_document, _version_of, _comment = from_row(Document), from_row(DocumentVersion), from_row(Comment)


class DocumentRepository(Repository):
    async def last(self) -> tuple[int, int]:
        """The highest numbers of documents and of comments."""
        document = await self.value("SELECT coalesce(max(id), 0) FROM documents_document")
        comment = await self.value("SELECT coalesce(max(id), 0) FROM documents_comment")
        return document, comment

    async def document(self, id: str) -> Document | None:
        return await self.one(_document, f"{_DOCUMENTS} id = ?", number_of(id))

    async def of_threads(
        self, threads: Collection[str], before: int, limit: int
    ) -> tuple[tuple[Document, ...], bool]:
        """Documents of these threads with lower numbers than `before`, the latest first."""
        sql = f"{_DOCUMENTS} thread {AMONG} AND id < ? ORDER BY id DESC LIMIT ?"
        return await self.page(_document, sql, listed(threads), before, limit=limit)

    async def text(self, document: Document, version: int) -> str:
        """One version. Raises `OperationError` if there is none."""
        sql = "SELECT text FROM documents_version WHERE document = ? AND version = ?"
        rows = await self._host.rows(sql, number_of(document.id), version)
        if not rows:
            latest = document.version
            raise not_found(f"{document.id} has no version {version}; its latest is {latest}")
        return zlib.decompress(rows[0][0]).decode()

    async def versions(
        self, id: str, before: int, limit: int
    ) -> tuple[tuple[DocumentVersion, ...], bool]:
        """Versions before this one, the latest first."""
        sql = (
            f"SELECT {columns(DocumentVersion)} FROM documents_version "
            "WHERE document = ? AND version < ? ORDER BY version DESC LIMIT ?"
        )
        return await self.page(_version_of, sql, number_of(id), before, limit=limit)

    async def comment(self, document: str, id: int) -> Comment | None:
        return await self.one(_comment, f"{_COMMENTS} AND id = ?", number_of(document), id)

    async def comments(
        self, document: str, after: int, limit: int, *, resolved: bool
    ) -> tuple[tuple[Comment, ...], bool]:
        """Comments after this one, oldest first; with `resolved` those that are done with, too."""
        sql = f"{_COMMENTS} AND id > ? AND (resolved_by IS NULL OR ?) ORDER BY id LIMIT ?"
        of = number_of(document), after, int(resolved)
        return await self.page(_comment, sql, *of, limit=limit)

    # Full text ---------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        """Make documents findable that were written when none were. One at a time: texts may be
        large. Raises `StoreUnavailable`; the next start goes on."""
        last = 0
        while (found := await self.one(_document, _NOT_FINDABLE, last)) is not None:
            text, last = await self.text(found, found.version), number_of(found.id)
            values = (last, indexable(found.title), indexable(text))
            await self._host.keep([Statement(_FINDABLE_FIRST, values)])

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        """`Searchable.found`. Who has written the latest version, and when, counts."""
        more, values = search.conditions("v.author", "v.at")
        sql = _FOUND.format(among=AMONG, more=more)
        where = search.words.match, listed(search.threads), *values
        hits: list[SearchHit] = []
        for score, place, by, at, *row in await self._host.rows(
            sql, *where, search.limit, search.skip
        ):
            document = _document(*row)
            hits.append(
                SearchHit(
                    kind="documents",
                    id=document.id,
                    thread=document.thread_id,
                    by=by,
                    at=at,
                    snippet=await snippet_of(search.words, await self._text(document, place)),
                    title=document.title,
                    score=-score,
                )
            )
        return hits

    async def _text(self, document: Document, place: int) -> str:
        """The text where the words were found."""
        if place > 0:
            return await self.text(document, document.version)
        comment = await self.comment(document.id, -place)
        return "" if comment is None else comment.text


def created(document: Document, text: str) -> Sequence[Statement]:
    at = document.created_at.timestamp()
    made = insert(
        "documents_document",
        id=number_of(document.id),
        thread=document.thread_id,
        created_at=at,
        **document.model_dump(include={"title", "version", "created_by"}),
    )
    return [made, *_written(document, 0, document.created_by, at, "created", text)]


def saved(
    document: Document, base: int, author: str, at: float, note: str, text: str
) -> Sequence[Statement]:
    """The document's next version, if the one before is still the latest."""
    number, version = number_of(document.id), document.version
    moved = update("documents_document", {"version": version}, id=number, version=version - 1)
    return [moved, *_written(document, base, author, at, note, text)]


def _written(
    document: Document, base: int, author: str, at: float, note: str, text: str
) -> Sequence[Statement]:
    """A version, by which the document is found from now on."""
    number, packed = number_of(document.id), zlib.compress(text.encode())
    lines = text.count("\n") + 1
    values = (number, document.version, base, author, at, note, lines, packed)
    return [
        Statement("INSERT INTO documents_version VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values),
        _findable(number, document.title, text),
    ]


def _findable(row: int, title: str, text: str) -> Statement:
    sql = "INSERT OR REPLACE INTO documents_found (rowid, title, text) VALUES (?, ?, ?)"
    return Statement(sql, (row, indexable(title), indexable(text)))


def commented(document: str, comment: Comment) -> Sequence[Statement]:
    values = comment.model_dump(exclude={"at", "resolved_by"})
    values |= {"document": number_of(document), "at": comment.at.timestamp()}
    return [insert("documents_comment", **values), _findable(-comment.id, "", comment.text)]


def resolved(comment: int, by: str) -> Sequence[Statement]:
    return [update("documents_comment", {"resolved_by": by}, id=comment, resolved_by=None)]


_FINDABLE_FIRST = """
INSERT INTO documents_found (rowid, title, text)
SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM documents_found WHERE rowid = ?1)
"""
_NOT_FINDABLE = f"""
{_DOCUMENTS}
id > ? AND id NOT IN (SELECT rowid FROM documents_found) ORDER BY id LIMIT 1
"""

# A document counts once, by the best of its text and its comments.
_FOUND = """
WITH f AS MATERIALIZED (
    SELECT rowid AS r, bm25(documents_found, 4.0, 1.0) AS score
    FROM documents_found WHERE documents_found MATCH ?
)
SELECT min(f.score) AS score, f.r, v.author, v.at,
       'd' || d.id, d.title, d.thread, d.version, d.created_by, d.created_at
FROM f LEFT JOIN documents_comment AS c ON c.id = -f.r
JOIN documents_document AS d ON d.id = coalesce(c.document, f.r)
JOIN documents_version AS v ON v.document = d.id AND v.version = d.version
WHERE d.thread {among}{more}
GROUP BY d.id ORDER BY score, d.id DESC LIMIT ? OFFSET ?
"""
