"""What a process writes, as lines of text."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["OutputPipe", "lines", "output_pipe"]

MAX_LINE = 8192
"""Bytes after which a line is cut in two."""
_CHUNK = 65536


class OutputPipe:
    """`fd` goes to a process as its output; what it writes there comes out of `reader`."""

    def __init__(self, fd: int, reader: asyncio.StreamReader):
        self.fd, self.reader = fd, reader
        self._open = True

    def handed_over(self) -> None:
        """The process has its own copy of `fd`: from now on its end is the end of the lines."""
        if self._open:
            self._open = False
            os.close(self.fd)


@asynccontextmanager
async def output_pipe() -> AsyncIterator[OutputPipe]:
    """A pipe that is closed at the end, even if somebody still has the other end open.

    (asyncio's own pipes of a subprocess stay open for as long as a grandchild holds them.)
    """
    reading, writing = os.pipe()
    loop = asyncio.get_running_loop()
    pipe = OutputPipe(writing, asyncio.StreamReader())
    try:
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(pipe.reader), os.fdopen(reading, "rb", buffering=0)
        )
        try:
            yield pipe
        finally:
            transport.close()
            await asyncio.sleep(0)  # a transport closes its file in the loop's next pass
    finally:
        pipe.handed_over()


async def lines(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """The lines without their ends; the last one even if it has none."""
    rest = b""
    while chunk := await reader.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        while len(rest) > MAX_LINE:
            whole.append(rest[:MAX_LINE])
            rest = rest[MAX_LINE:]
        for line in whole:
            yield _text(line)
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")
