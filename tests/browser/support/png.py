"""Smaller files of the same pictures: screenshots are kept with the project."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator

__all__ = ["drawn", "shrunk"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {2: 3, 6: 4}


def shrunk(png: bytes) -> bytes:
    """The same pixels in fewer bytes. 8 bits a channel with or without alpha, not interlaced.

    Filtered lines, as browsers write them, suit photographs; flat areas and text compress better
    without (PNG specification, 12.7 "Filter selection").
    """
    chunks = list(_chunks(png))
    width, _, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if depth != 8 or color not in _CHANNELS or interlaced:
        raise ValueError(f"not a picture of this kind: {depth} bits, color type {color}")
    data = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    lines = _unfiltered(data, width * _CHANNELS[color], _CHANNELS[color])
    packed = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    return _SIGNATURE + b"".join(
        _chunk(kind, body)
        for kind, body in ((b"IHDR", chunks[0][1]), (b"IDAT", packed), (b"IEND", b""))
    )


def drawn(width: int, height: int, color: Callable[[int, int], tuple[int, int, int]]) -> bytes:
    """A picture of which `color` says the red, green and blue at x, y from the top left."""
    lines = (b"".join(bytes(color(x, y)) for x in range(width)) for y in range(height))
    packed = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, body) for kind, body in chunks)


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not png.startswith(_SIGNATURE):
        raise ValueError("no PNG")
    at = len(_SIGNATURE)
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + size]
        at += size + 12


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _unfiltered(data: bytes, size: int, step: int) -> Iterator[bytes]:
    """The lines of `size` bytes; `step` is the bytes of a pixel (PNG specification, 9.2)."""
    above = bytearray(size)
    for at in range(0, len(data), size + 1):
        line = bytearray(data[at + 1 : at + 1 + size])
        _unfilter(data[at], line, above, step)
        yield bytes(line)
        above = line


def _unfilter(how: int, line: bytearray, above: bytearray, step: int) -> None:
    for i in range(len(line)) if how else ():
        left = line[i - step] if i >= step else 0
        if how == 1:
            guess = left
        elif how == 2:
            guess = above[i]
        elif how == 3:
            guess = (left + above[i]) >> 1
        else:
            guess = _paeth(left, above[i], above[i - step] if i >= step else 0)
        line[i] = (line[i] + guess) & 0xFF


def _paeth(left: int, up: int, corner: int) -> int:
    near_left, near_up = abs(up - corner), abs(left - corner)
    near_corner = abs(left + up - 2 * corner)
    if near_left <= near_up and near_left <= near_corner:
        return left
    return up if near_up <= near_corner else corner
