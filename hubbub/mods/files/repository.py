"""What the mod `files` stores: tables of files, of who may read them and of their words, and
contents in a folder."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hubbub.errors import OperationError, StoreUnavailable, UserError
from hubbub.mods.fields import Texts, number_of
from hubbub.mods.files.schemas import File
from hubbub.mods.operation import Statement, not_found
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

__all__ = [
    "ContentStore",
    "FileRepository",
    "StorageUsage",
    "StoredFile",
    "added",
    "deleted",
    "granted",
]


class StoredFile(File):
    """A file, whoever looks at it; `thread` is where it was brought."""

    cut: bool = False
    """Whether it has more text than is kept."""
    threads: Texts = ()
    """Root threads whose readers may read it."""

    def for_reader(self, thread: str | None) -> File:
        """The file for somebody who finds it in `thread`."""
        return File.model_validate({**dict(self), "thread": thread})


class StorageUsage(NamedTuple):
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

    async def usage(self, who: str) -> StorageUsage:
        """What this participant has, and the network."""
        once = f"SELECT DISTINCT sha256, size FROM files_file WHERE {_THERE}"
        sql = (
            "SELECT coalesce(sum(size) FILTER (WHERE uploaded_by = ?), 0), coalesce("
            f"(SELECT sum(size) FROM ({once})), 0), count(*) FROM files_file WHERE {_THERE}"
        )
        return (await self.all(StorageUsage, sql, who))[0]

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


BLOCK = 1 << 20
"""Bytes that are read at once."""
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)  # where it is missing, links are found by `lstat`
_BINARY = getattr(os, "O_BINARY", 0)


class ContentStore:
    """Contents of files in one folder. What the disk refuses is `StoreUnavailable`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._uploads, self._objects = folder / "uploads", folder / "objects"
        self._texts = folder / "texts"

    # Beginning --------------------------------------------------------------------------------

    def prepare(self, wanted: Collection[str]) -> Set[str]:
        """Make the folders, and remove what an end in the middle has left: uploads, and contents
        that are not among the `wanted`. Returns those that are missing. Raises `UserError` where a
        link stands for a folder."""
        for place in (self.folder, self._uploads, self._objects, self._texts):
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                raise UserError(
                    f"{place} must be a folder, and no link to one: files are kept there"
                )
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sweep(self._uploads, ())
        self._sweep(self._objects, wanted)
        self._sweep(self._texts, wanted)
        return set(wanted) - {entry.name for entry in os.scandir(self._objects)}

    def _sweep(self, place: Path, wanted: Collection[str]) -> None:
        for entry in os.scandir(place):
            if entry.name.partition(".")[0] in wanted:
                continue
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)

    # Coming in --------------------------------------------------------------------------------

    def write(self, upload: str, offset: int, data: bytes) -> None:
        """Write a part of an upload; the first one makes it."""
        with _disk(), _opened(self._uploads / upload, os.O_WRONLY | os.O_CREAT) as file:
            os.lseek(file, offset, os.SEEK_SET)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]

    def part(self, upload: str, offset: int, size: int) -> bytes:
        """What has come in there."""
        with _disk(), _opened(self._uploads / upload, os.O_RDONLY) as file:
            return _read(file, offset, size)

    def drop(self, upload: str) -> None:
        """An upload comes to nothing."""
        with _disk():
            for name in (upload, _text_of(upload)):
                (self._uploads / name).unlink(missing_ok=True)

    def flushed(self, upload: str) -> tuple[str, int]:
        """Checksum and size of an upload, which is on the disk from here on."""
        digest, size = hashlib.sha256(), 0
        with _disk(), _opened(self._uploads / upload, os.O_RDWR) as file:
            while block := os.read(file, BLOCK):
                digest.update(block)
                size += len(block)
            os.fsync(file)
        return digest.hexdigest(), size

    def upload_path(self, upload: str) -> Path:
        """Where an upload lies, for whoever reads text from it."""
        return self._uploads / upload

    def keep(self, upload: str, sha256: str) -> None:
        """The upload becomes a content: in one step, and for good when this returns. A content that
        is there already is replaced by the same bytes."""
        with _disk():
            self._check_folder(self._objects)
            os.replace(self._uploads / upload, self._objects / sha256)
            _sync_folder(self._objects)

    # Contents ---------------------------------------------------------------------------------

    def read(self, sha256: str, size: int, offset: int, most: int) -> bytes:
        """Bytes of a content of this size. Raises `OperationError` if it is not there as it was."""
        self._check_folder(self._objects)
        with _disk(), _opened(self._objects / sha256, os.O_RDONLY) as file:
            if os.fstat(file).st_size != size:
                raise _damaged("it has another size")
            return _read(file, offset, most)

    def remove(self, sha256: str) -> None:
        """Nobody refers to the content any more."""
        with _disk():
            self._check_folder(self._objects)
            (self._objects / sha256).unlink(missing_ok=True)
            for text in self._texts.glob(f"{sha256}.*"):
                text.unlink(missing_ok=True)
            _sync_folder(self._objects)

    # Texts ------------------------------------------------------------------------------------

    def keep_text(self, upload: str, sha256: str, how: str, text: str) -> None:
        """Keep what was read from a content."""
        made = self._uploads / _text_of(upload)
        with _disk():
            self._check_folder(self._texts)
            with _opened(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
                rest = memoryview(text.encode())
                while rest:
                    rest = rest[os.write(file, rest) :]
                os.fsync(file)
            os.replace(made, self._texts / f"{sha256}.{how}")
            _sync_folder(self._texts)

    def text(self, sha256: str, how: str, most: int | None = None) -> str:
        """The text that was read from a content, or its first `most` characters. Raises
        `OperationError` if it is not there."""
        self._check_folder(self._texts)
        with _disk(), _opened(self._texts / f"{sha256}.{how}", os.O_RDONLY) as file:
            size = os.fstat(file).st_size if most is None else most * 4
            text = _read(file, 0, size).decode(errors="ignore")
        return text if most is None else text[:most]

    def _check_folder(self, place: Path) -> None:
        if place.is_symlink():
            raise _damaged("a symbolic link stands for the folder of contents")


def _text_of(upload: str) -> str:
    """What the text that is read from an upload is called until it is all written."""
    return f"{upload}.text"


@contextmanager
def _disk() -> Iterator[None]:
    """What the disk refuses, and what is missing, is told in words for the caller."""
    try:
        yield
    except FileNotFoundError:
        raise _damaged("it is missing") from None
    except OSError as error:
        raise StoreUnavailable(f"files: the disk refuses: {error.strerror or error}") from error


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """A regular file, never what a link leads to. Raises `OperationError`."""
    if path.is_symlink():
        raise _damaged("a symbolic link stands in its place")
    file = os.open(path, flags | _NOFOLLOW | _BINARY, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise _damaged("it is no regular file")
        yield file
    finally:
        os.close(file)


def _read(file: int, offset: int, size: int) -> bytes:
    os.lseek(file, offset, os.SEEK_SET)
    blocks = []
    while size > 0 and (block := os.read(file, size)):
        blocks.append(block)
        size -= len(block)
    return b"".join(blocks)


def _sync_folder(place: Path) -> None:
    """What was renamed stays so, whatever happens to the machine."""
    if os.name == "nt":
        return  # a folder cannot be opened there
    file = os.open(place, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _damaged(why: str) -> OperationError:
    return not_found(f"files: the content cannot be read from the hub's folder: {why}")
