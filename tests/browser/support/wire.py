"""A wire between the page and the hub that a test can cut, silence and mend.

Browsers leave open sockets to this machine alone when they are told to be offline, so the way
itself must break.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

__all__ = ["Wire", "laid"]

_CHUNK = 64 * 1024


class Wire:
    """A TCP relay on a port of its own.

    `cut` ends what goes through it and lets nothing new in, `cut_after` as soon as the browser has
    got so much; `silence` makes everything stand still without a word to either side, as a lost
    radio link does; `mend` undoes them all.
    """

    def __init__(self, port: int):
        """`port` is where the hub listens on 127.0.0.1; it may go away and come back."""
        self._target = port
        self._server: asyncio.Server | None = None
        self._strands: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._whole = True
        self._left: int | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()

    @property
    def url(self) -> str:
        """What the browser opens."""
        assert self._server is not None, "laid before"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    def cut(self) -> None:
        """Everything that goes through ends at once, and what tries anew is turned away."""
        self._whole = False
        for writer in self._writers:
            writer.transport.abort()

    def cut_after(self, size: int) -> None:
        """Cut when the browser has got `size` more bytes: in the middle of what it asks for."""
        self._left = size

    def silence(self) -> None:
        self._flowing.clear()

    def mend(self) -> None:
        self._whole, self._left = True, None
        self._flowing.set()

    async def begin(self) -> None:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)

    async def end(self) -> None:
        assert self._server is not None, "laid before"
        self._server.close()
        self.cut()
        self._flowing.set()
        await asyncio.gather(*self._strands)
        await self._server.wait_closed()

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        strand = asyncio.create_task(self._relay(reader, writer))
        self._strands.add(strand)
        strand.add_done_callback(self._strands.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._kept(writer), contextlib.suppress(OSError):  # nobody may listen there now
            if not self._whole:
                return
            answers, onward = await asyncio.open_connection("127.0.0.1", self._target)
            with self._kept(onward):
                await asyncio.gather(
                    self._copy(reader, onward), self._copy(answers, writer, counted=True)
                )

    @contextlib.contextmanager
    def _kept(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        """While the context lasts `cut` finds the writer; at its end it is closed."""
        self._writers.add(writer)
        try:
            yield
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool = False
    ) -> None:
        with contextlib.suppress(OSError):  # torn off: the other direction notices by itself
            while data := await reader.read(_CHUNK):
                await self._flowing.wait()
                if counted and self._left is not None:
                    self._left -= len(data)
                    if self._left < 0:
                        self.cut()
                        return
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def laid(port: int) -> AsyncIterator[Wire]:
    """A whole wire to 127.0.0.1:`port`."""
    wire = Wire(port)
    await wire.begin()
    try:
        yield wire
    finally:
        await wire.end()
