"""Relays between processes, and between a browser and a hub, that tests interrupt.

A browser that is set offline keeps open sockets to this machine, so the connection itself must
break.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

__all__ = ["Cable", "tcp_cable", "unix_cable"]

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Cable:
    """All connections to one address. `mend` ends what `silence`, `cut` and `cut_after` began."""

    def __init__(self, far: Connect):
        self.address = ""
        """Host and port of its near end."""
        self._far = far
        self._whole = True
        self._left: int | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._lines: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"http://{self.address}/"

    def silence(self) -> None:
        """Stop all data without closing a connection, like a lost radio link. Data sent meanwhile
        arrives once it is mended, unless one side has given up by then."""
        self._flowing.clear()

    def cut(self) -> None:
        """Abort all connections, and refuse new ones."""
        self._whole = False
        for end in self._ends:
            end.transport.abort()

    def cut_after(self, size: int) -> None:
        """Cut when the near end has received `size` more bytes."""
        self._left = size

    def mend(self) -> None:
        self._whole, self._left = True, None
        self._flowing.set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        await self._flowing.wait()
        try:
            if not self._whole:
                raise ConnectionRefusedError
            there, to_there = await self._far()
        except OSError:
            self._ends.discard(writer)
            writer.transport.abort()
            return
        self._ends.add(to_there)
        for pump in (self._pump(reader, to_there), self._pump(there, writer, counted=True)):
            line = asyncio.create_task(pump)
            self._lines.add(line)
            line.add_done_callback(self._lines.discard)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool = False
    ) -> None:
        with suppress(OSError):  # aborted: the other direction fails too
            while data := await reader.read(1 << 16):
                await self._flowing.wait()
                if counted and self._left is not None:
                    self._left -= len(data)
                    if self._left < 0:
                        self.cut()
                writer.write(data)
                await writer.drain()
        await self._flowing.wait()
        writer.close()
        self._ends.discard(writer)

    async def close(self) -> None:
        self.cut()
        for line in list(self._lines):
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)


@asynccontextmanager
async def tcp_cable(address: str) -> AsyncIterator[Cable]:
    """A cable to a local address (host:port)."""
    host, _, port = address.rpartition(":")
    cable = Cable(lambda: asyncio.open_connection(host, int(port)))
    server = await asyncio.start_server(cable.accept, "127.0.0.1", 0)
    cable.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield cable
    finally:
        server.close()
        await cable.close()


@asynccontextmanager
async def unix_cable(near: Path, far: Path) -> AsyncIterator[Cable]:
    """A cable to a Unix socket; `near` is the path of its other end."""
    cable = Cable(lambda: asyncio.open_unix_connection(far))
    server = await asyncio.start_unix_server(cable.accept, near)
    try:
        yield cable
    finally:
        server.close()
        await cable.close()
