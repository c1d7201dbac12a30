"""Packed files: how much they would become, without unpacking more than that takes."""

from __future__ import annotations

import bz2
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from hubbub.mods.files.reading.words import Limits, NoText, Refused

__all__ = ["check_stream", "open_zip", "unpacked"]

_BLOCK = 1 << 16
_END = b"PK\x05\x06"
_END_RECORD = struct.Struct("<4s4H2LH")
_DIRECTORY = 2_000_000
"""Bytes that the list of an archive may have: it is read into memory."""
_LZMA_MEMORY = 100_000_000


class _Unpacker(Protocol):
    """What the standard library's three have in common."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def check_stream(path: Path, media_type: str, limits: Limits) -> None:
    """Raises `Refused` if a compressed file would become too large. A damaged one harms nobody."""
    make = _UNPACKERS.get(media_type)
    if make is None:
        return
    packed, size = path.stat().st_size, 0
    try:
        with path.open("rb") as file:
            for piece in _stream(make, file.read):
                size += piece
                limits.check(packed, size)
    except (zlib.error, lzma.LZMAError, OSError, EOFError):
        return


class _Gzip:
    """zlib's own, which keeps what it had no room to unpack."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


def _lzma() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)


_UNPACKERS: dict[str, Callable[[], _Unpacker]] = {
    "application/gzip": _Gzip,
    "application/x-gzip": _Gzip,
    "application/x-bzip2": bz2.BZ2Decompressor,
    "application/x-bzip": bz2.BZ2Decompressor,
    "application/x-xz": _lzma,
}


def _stream(make: Callable[[], _Unpacker], read: Callable[[int], bytes]) -> Iterator[int]:
    """How many bytes come out, piece by piece; several streams may follow each other."""
    unpacker = make()
    data = read(_BLOCK)
    while data:
        piece = unpacker.decompress(data, _BLOCK)
        yield len(piece)
        while len(piece) == _BLOCK and not unpacker.eof:
            piece = unpacker.decompress(b"", _BLOCK)
            yield len(piece)
        if unpacker.eof:
            rest: bytes = getattr(unpacker, "unused_data", b"")
            unpacker, data = make(), rest or read(_BLOCK)
        else:
            data = read(_BLOCK)


def open_zip(path: Path, limits: Limits) -> zipfile.ZipFile:
    """The archive, after a look at what it says of itself. Raises `Refused` for a bomb, `NoText`
    for a damaged one."""
    _check_directory(path, limits)
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, struct.error, NotImplementedError, ValueError, OSError) as error:
        raise NoText("the archive is damaged") from error
    try:
        if len(archive.filelist) > limits.entries:
            raise Refused(f"it has more than {limits.entries} files in it")
        limits.check(path.stat().st_size, sum(each.file_size for each in archive.filelist))
    except BaseException:
        archive.close()
        raise
    return archive


def _check_directory(path: Path, limits: Limits) -> None:
    """Look at the end record before the list it speaks of is read into memory."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 65_557))
        tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_RECORD.size:
        raise NoText("the archive is damaged")
    _, _, _, _, entries, length, _, _ = _END_RECORD.unpack_from(tail, at)
    if entries == 0xFFFF or entries > limits.entries:
        raise Refused(f"it has more than {limits.entries} files in it")
    if length > _DIRECTORY:
        raise Refused(f"the list of its files has more than {_DIRECTORY} bytes")


def unpacked(archive: zipfile.ZipFile, name: str, limits: Limits) -> Iterator[bytes]:
    """A file of the archive, piece by piece. What it says of its size is not believed."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise NoText(f"there is no {name} in it") from None
    if info.flag_bits & 1:
        raise NoText("it is encrypted")
    size = 0
    try:
        with archive.open(info) as file:
            while piece := file.read(_BLOCK):
                size += len(piece)
                limits.check(info.compress_size, size)
                yield piece
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, EOFError) as error:
        raise NoText("the archive is damaged") from error
