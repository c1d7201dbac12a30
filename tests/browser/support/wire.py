"""A TCP relay between the page and the hub that a test can cut, silence and mend.

When a browser is set offline, it keeps open sockets to this machine, so the connection itself must
break.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["Wire", "open_wire"]

_CHUNK = 64 * 1024


class Wire:
    """A TCP relay. `mend` undoes the effects of `cut`, `cut_after` and `silence`."""

    def __init__(self, port: int):
        """`port` is the hub's port on 127.0.0.1; the hub can restart."""
        self.url = ""
        """The address for the browser."""
        self._target = port
        self._strands: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._whole = True
        self._left: int | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()

    def cut(self) -> None:
        """Abort all connections, and refuse new ones."""
        self._whole = False
        for writer in self._writers:
            writer.transport.abort()

    def cut_after(self, size: int) -> None:
        """Cut when the browser has received `size` more bytes."""
        self._left = size

    def silence(self) -> None:
        """Stop all traffic without closing a connection, like a lost radio link."""
        self._flowing.clear()

    def mend(self) -> None:
        self._whole, self._left = True, None
        self._flowing.set()

    async def end(self) -> None:
        self.cut()
        self._flowing.set()
        await asyncio.gather(*self._strands)

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay a new connection."""
        strand = asyncio.create_task(self._relay(reader, writer))
        self._strands.add(strand)
        strand.add_done_callback(self._strands.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        try:
            self._writers.add(writer)
            if self._whole:
                answers, onward = await asyncio.open_connection("127.0.0.1", self._target)
                ends.add(onward)
                self._writers.add(onward)
                back = self._copy(answers, writer, counted=True)
                await asyncio.gather(self._copy(reader, onward), back)
        except OSError:
            pass  # the hub may be down
        finally:
            self._writers -= ends
            for each in ends:
                each.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool = False
    ) -> None:
        with contextlib.suppress(OSError):  # aborted: the other direction fails too
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
async def open_wire(port: int) -> AsyncIterator[Wire]:
    """Open a wire to 127.0.0.1:`port`."""
    wire = Wire(port)
    server = await asyncio.start_server(wire.take, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        yield wire
    finally:
        server.close()
        await wire.end()
        await server.wait_closed()
