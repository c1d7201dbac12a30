"""The storage of the mod `files`: tables of files, permissions and full text, and a folder of
contents."""

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
    "delete_file",
    "insert_file",
    "share",
    "unshare",
]


class StoredFile(File):
    """A file, independent of its reader. `thread` is the thread it was uploaded to."""

    cut: bool = False
    """Whether it has more text than is stored."""
    threads: Texts = ()
    """Root threads whose readers can read it."""

    def for_reader(self, thread: str | None) -> File:
        """The file for a reader who has access through `thread`."""
        return File.model_validate({**dict(self), "thread": thread})


class StorageUsage(NamedTuple):
    """The storage used. Equal contents count once for the network, but each time for uploaders."""

    of_one: int
    """Bytes of one participant."""
    total: int
    """Bytes of the network."""
    files: int
    """Number of files of the network."""


_GRANTS = "(SELECT json_group_array(DISTINCT thread) FROM files_share WHERE file = files_file.id)"
_FILES = "SELECT {} FROM files_file WHERE".format(
    columns(StoredFile, id="'f' || id", threads=_GRANTS)
)
_MAY_READ = f"(uploaded_by = ? OR id IN (SELECT file FROM files_share WHERE thread {AMONG}))"
_EXISTS = "deleted_at IS NULL"
_PAGE = f"AND {_EXISTS} AND id < ? ORDER BY id DESC LIMIT ?"
_file = from_row(StoredFile)


class FileRepository(Repository):
    async def file(self, id: str) -> StoredFile | None:
        """The file, even if deleted."""
        return await self.one(_file, f"{_FILES} id = ?", number_of(id))

    async def existing(self, ids: Iterable[str]) -> dict[str, StoredFile]:
        """Those of the files that are not deleted, by id."""
        numbers = listed(map(number_of, ids))
        files = await self.all(_file, f"{_FILES} id {AMONG} AND {_EXISTS}", numbers)
        return {each.id: each for each in files}

    async def of_thread(
        self, thread: str, before: int, limit: int
    ) -> tuple[tuple[StoredFile, ...], bool]:
        """Files of a root thread with numbers below `before`, latest first."""
        sql = f"{_FILES} id IN (SELECT file FROM files_share WHERE thread = ?) {_PAGE}"
        return await self.page(_file, sql, thread, before, limit=limit)

    async def of_reader(
        self, who: str, roots: Collection[str], before: int, limit: int
    ) -> tuple[tuple[StoredFile, ...], bool]:
        """Files that a participant can read, latest first. `roots` are its root threads."""
        sql = f"{_FILES} {_MAY_READ} {_PAGE}"
        return await self.page(_file, sql, who, listed(roots), before, limit=limit)

    async def usage(self, who: str) -> StorageUsage:
        """The storage used by this participant and the network."""
        once = f"SELECT DISTINCT sha256, size FROM files_file WHERE {_EXISTS}"
        sql = (
            "SELECT coalesce(sum(size) FILTER (WHERE uploaded_by = ?), 0), coalesce("
            f"(SELECT sum(size) FROM ({once})), 0), count(*) FROM files_file WHERE {_EXISTS}"
        )
        return (await self.all(StorageUsage, sql, who))[0]

    async def contents(self) -> set[str]:
        """The checksums of the contents of all files."""
        sql = f"SELECT DISTINCT sha256 FROM files_file WHERE {_EXISTS}"
        return set(await self.all(str, sql))

    async def has(self, sha256: str) -> bool:
        """Whether a file has this content."""
        sql = f"SELECT 1 FROM files_file WHERE sha256 = ? AND {_EXISTS} LIMIT 1"
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
                bool(untrusted),
            )
            for id, thread, name, by, at, score, text, untrusted in rows
        ]


# A file shared with several threads is listed once, in the first of them.
_FOUND = """
WITH f AS MATERIALIZED (
    SELECT rowid AS id, text, bm25(files_found, 4.0, 1.0) AS score
    FROM files_found WHERE files_found MATCH ?
)
SELECT d.id, min(g.thread), d.name, d.uploaded_by, d.at, f.score, f.text, d.untrusted
FROM f JOIN files_file AS d ON d.id = f.id JOIN files_share AS g ON g.file = d.id
WHERE d.deleted_at IS NULL AND g.thread IN (SELECT value FROM json_each(?)){more}
GROUP BY d.id ORDER BY f.score, d.id DESC LIMIT ? OFFSET ?
"""


def insert_file(file: StoredFile, text: str) -> Sequence[Statement]:
    """Insert a file, and index the beginning of its text."""
    number, own = number_of(file.id), {"id", "at", "threads", "deleted_by", "deleted_at"}
    indexed = {"name": indexable(file.name.replace("_", " ")), "text": indexable(text)}
    values = file.model_dump(exclude=own)
    return [
        insert("files_file", id=number, at=file.at.timestamp(), **values),
        *(insert("files_share", file=number, thread=thread, message=0) for thread in file.threads),
        insert("files_found", rowid=number, **indexed),
    ]


def share(id: str, thread: str, who: str, roots: Collection[str], *, message: int = 0) -> Statement:
    """Share a file with the readers of a thread, if it exists and `who` can read it; by a message,
    until that is deleted."""
    sql = (
        "INSERT OR IGNORE INTO files_share "
        f"SELECT id, ?, ? FROM files_file WHERE id = ? AND {_EXISTS} AND {_MAY_READ}"
    )
    return Statement(sql, (thread, message, number_of(id), who, listed(roots)))


def unshare(message: int) -> Statement:
    """End what a message shared."""
    return Statement("DELETE FROM files_share WHERE message = ?", (message,))


def delete_file(file: File, by: str, at: float) -> Sequence[Statement]:
    number = number_of(file.id)
    return [
        update("files_file", {"deleted_by": by, "deleted_at": at}, id=number, deleted_at=None),
        Statement("DELETE FROM files_found WHERE rowid = ?", (number,)),
    ]


BLOCK = 1 << 20
"""Bytes per read."""
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)  # if it is missing, `lstat` detects links
_BINARY = getattr(os, "O_BINARY", 0)


class ContentStore:
    """A folder with the contents of files. Errors of the disk are raised as `StoreUnavailable`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._uploads, self._objects = folder / "uploads", folder / "objects"
        self._texts = folder / "texts"

    # Start ------------------------------------------------------------------------------------

    def prepare(self, wanted: Collection[str]) -> Set[str]:
        """Create the folders, and remove leftovers of a crash: uploads, and contents that are not
        in `wanted`. Returns the contents of `wanted` that are missing. Raises `UserError` if a
        folder is a symbolic link."""
        for place in (self.folder, self._uploads, self._objects, self._texts):
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                raise UserError(
                    f"{place} must be a folder and not a link, because files are stored there"
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

    # Uploads ----------------------------------------------------------------------------------

    def write(self, upload: str, offset: int, data: bytes) -> None:
        """Write a part of an upload, which the first part creates."""
        with _disk(), _opened(self._uploads / upload, os.O_WRONLY | os.O_CREAT) as file:
            os.lseek(file, offset, os.SEEK_SET)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]

    def part(self, upload: str, offset: int, size: int) -> bytes:
        """Bytes of an upload."""
        with _disk(), _opened(self._uploads / upload, os.O_RDONLY) as file:
            return _read(file, offset, size)

    def drop(self, upload: str) -> None:
        """Delete an upload."""
        with _disk():
            for name in (upload, _text_of(upload)):
                (self._uploads / name).unlink(missing_ok=True)

    def flush(self, upload: str) -> tuple[str, int]:
        """Flush an upload to the disk. Returns its checksum and size."""
        digest, size = hashlib.sha256(), 0
        with _disk(), _opened(self._uploads / upload, os.O_RDWR) as file:
            while block := os.read(file, BLOCK):
                digest.update(block)
                size += len(block)
            os.fsync(file)
        return digest.hexdigest(), size

    def upload_path(self, upload: str) -> Path:
        """The path of an upload, for text extraction."""
        return self._uploads / upload

    def keep(self, upload: str, sha256: str) -> None:
        """Turn an upload into a content, atomically and durably. An existing content is replaced by
        the same bytes."""
        with _disk():
            self._check_folder(self._objects)
            os.replace(self._uploads / upload, self._objects / sha256)
            _sync_folder(self._objects)

    # Contents ---------------------------------------------------------------------------------

    def read(self, sha256: str, size: int, offset: int, most: int) -> bytes:
        """Bytes of a content of this size. Raises `OperationError` if it is missing or damaged."""
        self._check_folder(self._objects)
        with _disk(), _opened(self._objects / sha256, os.O_RDONLY) as file:
            if os.fstat(file).st_size != size:
                raise _damaged("its size has changed")
            return _read(file, offset, most)

    def remove(self, sha256: str) -> None:
        """Delete a content that is no longer used."""
        with _disk():
            self._check_folder(self._objects)
            (self._objects / sha256).unlink(missing_ok=True)
            for text in self._texts.glob(f"{sha256}.*"):
                text.unlink(missing_ok=True)
            _sync_folder(self._objects)

    # Texts ------------------------------------------------------------------------------------

    def keep_text(self, upload: str, sha256: str, how: str, text: str) -> None:
        """Store the text extracted from a content."""
        temporary = self._uploads / _text_of(upload)
        with _disk():
            self._check_folder(self._texts)
            with _opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
                rest = memoryview(text.encode())
                while rest:
                    rest = rest[os.write(file, rest) :]
                os.fsync(file)
            os.replace(temporary, self._texts / f"{sha256}.{how}")
            _sync_folder(self._texts)

    def text(self, sha256: str, how: str, most: int | None = None) -> str:
        """The text extracted from a content, or its first `most` characters. Raises
        `OperationError` if it is missing."""
        self._check_folder(self._texts)
        with _disk(), _opened(self._texts / f"{sha256}.{how}", os.O_RDONLY) as file:
            size = os.fstat(file).st_size if most is None else most * 4
            text = _read(file, 0, size).decode(errors="ignore")
        return text if most is None else text[:most]

    def _check_folder(self, place: Path) -> None:
        if place.is_symlink():
            raise _damaged("the folder of contents is a symbolic link")


def _text_of(upload: str) -> str:
    """Name of the temporary file for the text of an upload."""
    return f"{upload}.text"


@contextmanager
def _disk() -> Iterator[None]:
    """Converts errors of the disk into errors for the caller."""
    try:
        yield
    except FileNotFoundError:
        raise _damaged("it is missing") from None
    except OSError as error:
        raise StoreUnavailable(f"files: the disk failed: {error.strerror or error}") from error


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """Opens a regular file without following links. Raises `OperationError`."""
    if path.is_symlink():
        raise _damaged("it is a symbolic link")
    file = os.open(path, flags | _NOFOLLOW | _BINARY, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise _damaged("it is not a regular file")
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
    """Make renames in the folder durable."""
    if os.name == "nt":
        return  # folders cannot be opened there
    file = os.open(place, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _damaged(why: str) -> OperationError:
    return not_found(f"files: the content cannot be read from the hub's folder: {why}")
