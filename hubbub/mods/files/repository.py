"""The tables of the mod `files`: files, who may read them, and what they are found by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from hubbub.mods.fields import Texts, number_of
from hubbub.mods.files.schemas import File
from hubbub.mods.operation import Statement
from hubbub.mods.repository import (
    AMONG,
    Repository,
    columns,
    from_row,
    insert,
    listed,
    update,
)
from hubbub.mods.text_search import SearchHit, SearchQuery, indexable, snippet_of

__all__ = ["FileRepository", "StoredFile", "Usage", "added", "deleted", "granted"]


class StoredFile(File):
    """A file, whoever looks at it; `thread` is where it was brought."""

    cut: bool = False
    """Whether it has more text than is kept."""
    threads: Texts = ()
    """Root threads whose readers may read it."""

    def for_reader(self, thread: str | None) -> File:
        """The file for somebody who finds it in `thread`."""
        return File.model_validate({**dict(self), "thread": thread})


class Usage(NamedTuple):
    """Bytes and numbers. A content counts once for the network, for its uploaders each time."""

    of_one: int
    total: int
    files: int


_GRANTS = "(SELECT json_group_array(thread) FROM files_grant WHERE file = files_file.id)"
_FILES = "SELECT {} FROM files_file WHERE".format(
    columns(StoredFile, id="'f' || id", threads=_GRANTS)
)
_MAY_READ = f"(uploaded_by = ? OR id IN (SELECT file FROM files_grant WHERE thread {AMONG}))"
_THERE = "deleted_at IS NULL"
_PAGE = f"AND {_THERE} AND id < ? ORDER BY id DESC LIMIT ?"
_file = from_row(StoredFile)


class FileRepository(Repository):
    async def file(self, id: str) -> StoredFile | None:
        """Also one that was deleted."""
        return await self.one(_file, f"{_FILES} id = ?", number_of(id))

    async def there(self, ids: Iterable[str]) -> dict[str, StoredFile]:
        """Those of the files that are there."""
        numbers = listed(map(number_of, ids))
        found = await self.all(_file, f"{_FILES} id {AMONG} AND {_THERE}", numbers)
        return {each.id: each for each in found}

    async def of_thread(
        self, thread: str, before: int, limit: int
    ) -> tuple[tuple[StoredFile, ...], bool]:
        """Files of a root thread that came before this one, the latest first."""
        sql = f"{_FILES} id IN (SELECT file FROM files_grant WHERE thread = ?) {_PAGE}"
        return await self.page(_file, sql, thread, before, limit=limit)

    async def of_reader(
        self, who: str, roots: Collection[str], before: int, limit: int
    ) -> tuple[tuple[StoredFile, ...], bool]:
        """Files that somebody may read, the latest first; `roots` are all root threads it reads."""
        sql = f"{_FILES} {_MAY_READ} {_PAGE}"
        return await self.page(_file, sql, who, listed(roots), before, limit=limit)

    async def usage(self, who: str) -> Usage:
        """What this participant has, and the network."""
        once = f"SELECT DISTINCT sha256, size FROM files_file WHERE {_THERE}"
        sql = (
            "SELECT coalesce(sum(size) FILTER (WHERE uploaded_by = ?), 0), coalesce("
            f"(SELECT sum(size) FROM ({once})), 0), count(*) FROM files_file WHERE {_THERE}"
        )
        return (await self.all(Usage, sql, who))[0]

    async def contents(self) -> set[str]:
        """Checksums of all that files have."""
        sql = f"SELECT DISTINCT sha256 FROM files_file WHERE {_THERE}"
        return set(await self.all(str, sql))

    async def has(self, sha256: str) -> bool:
        """Whether a file has this content."""
        sql = f"SELECT 1 FROM files_file WHERE sha256 = ? AND {_THERE} LIMIT 1"
        return bool(await self._host.rows(sql, sha256))

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        """`Searchable.found`."""
        more, values = search.conditions("d.uploaded_by", "d.at")
        match, threads = search.words.match, listed(search.threads)
        rows = await self._host.rows(
            _FOUND.format(more=more), match, threads, *values, search.limit, search.skip
        )
        return [
            SearchHit(
                "files",
                f"f{id}",
                thread,
                by,
                at,
                await snippet_of(search.words, text),
                name,
                -score,
                bool(outside),
            )
            for id, thread, name, by, at, score, text, outside in rows
        ]


# A file that several of the threads have is found once, in the one that is named first.
_FOUND = """
WITH f AS MATERIALIZED (
    SELECT rowid AS id, text, bm25(files_found, 4.0, 1.0) AS score
    FROM files_found WHERE files_found MATCH ?
)
SELECT d.id, min(g.thread), d.name, d.uploaded_by, d.at, f.score, f.text, d.outside
FROM f JOIN files_file AS d ON d.id = f.id JOIN files_grant AS g ON g.file = d.id
WHERE d.deleted_at IS NULL AND g.thread IN (SELECT value FROM json_each(?)){more}
GROUP BY d.id ORDER BY f.score, d.id DESC LIMIT ? OFFSET ?
"""


def added(file: StoredFile, text: str) -> Sequence[Statement]:
    """A file, and the beginning of its text, by which it is found."""
    number, own = number_of(file.id), {"id", "at", "threads", "deleted_by", "deleted_at"}
    found = {"name": indexable(file.name.replace("_", " ")), "text": indexable(text)}
    values = file.model_dump(exclude=own)
    return [
        insert("files_file", id=number, at=file.at.timestamp(), **values),
        *(insert("files_grant", file=number, thread=thread) for thread in file.threads),
        insert("files_found", rowid=number, **found),
    ]


def granted(id: str, thread: str, who: str, roots: Collection[str]) -> Statement:
    """Readers of this thread may read the file, if it is there and its giver may read it."""
    sql = (
        "INSERT OR IGNORE INTO files_grant "
        f"SELECT id, ? FROM files_file WHERE id = ? AND {_THERE} AND {_MAY_READ}"
    )
    return Statement(sql, (thread, number_of(id), who, listed(roots)))


def deleted(file: File, by: str, at: float) -> Sequence[Statement]:
    number = number_of(file.id)
    return [
        update("files_file", {"deleted_by": by, "deleted_at": at}, id=number, deleted_at=None),
        Statement("DELETE FROM files_found WHERE rowid = ?", (number,)),
    ]
