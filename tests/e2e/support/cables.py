"""Proxies between processes that can be cut: data stops, but no connection closes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

__all__ = ["Cable", "tcp_cable", "unix_cable"]

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Cable:
    """All connections to one address. Data sent while it is cut arrives once it is mended, unless
    one side has given up by then."""

    def __init__(self, far: Connect):
        self._far = far
        self._whole = asyncio.Event()
        self._whole.set()
        self._lines: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        await self._whole.wait()
        try:
            there, to_there = await self._far()
        except OSError:
            writer.transport.abort()
            return
        self._ends.add(to_there)
        for source, target in ((reader, to_there), (there, writer)):
            line = asyncio.create_task(self._pump(source, target))
            self._lines.add(line)
            line.add_done_callback(self._lines.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
        await self._whole.wait()
        writer.close()
        self._ends.discard(writer)

    async def close(self) -> None:
        for end in self._ends:
            end.transport.abort()
        for line in list(self._lines):
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)


@asynccontextmanager
async def tcp_cable(address: str) -> AsyncIterator[tuple[str, Cable]]:
    """A cable to a local address; yields the address of its near end, too."""
    host, _, port = address.rpartition(":")
    cable = Cable(lambda: asyncio.open_connection(host, int(port)))
    server = await asyncio.start_server(cable.accept, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", cable
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
