"""The folder of contents: each once, under its SHA-256, whole or not at all.

    folder/uploads/<upload>     what is coming in; removed when the hub starts
    folder/objects/<sha256>     contents, flushed before they get this name
    folder/texts/<sha256>.<how> the text that was read from a content, in one way or another

Names in there are made by the mod alone, from checksums and its own numbers. Nothing that is
opened may be a symbolic link. All functions block: they are run in threads.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Set
from contextlib import contextmanager
from pathlib import Path

from hubbub.errors import OperationError, StoreUnavailable, UserError
from hubbub.mods.operation import not_found

__all__ = ["Vault"]

BLOCK = 1 << 20
"""Bytes that are read at once."""
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)  # where it is missing, links are found by `lstat`
_BINARY = getattr(os, "O_BINARY", 0)


class Vault:
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
