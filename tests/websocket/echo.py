"""An echo server with the hub's connections.

`python -m tests.websocket.echo [deflate]` prints its port and serves until it is terminated.
"""

from __future__ import annotations

import asyncio
import sys

from websockets.asyncio.server import ServerConnection, serve

from hubbub.app.process import run_loop
from hubbub.network.connection import Connection, ConnectionOutlet, Flusher
from hubbub.network.limits import ConnectionCount

LARGEST = 64 * 1024 * 1024


class Echo:
    """An `Inlet` that answers each message with itself."""

    def __init__(self, outlet: ConnectionOutlet):
        self._outlet = outlet

    def receive(self, frame: bytes) -> None:
        self._outlet.write(frame)

    def drained(self) -> None:
        """Nothing waits for it."""

    def lost(self) -> None:
        """There is no state to clean up."""


async def _handle(connection: ServerConnection) -> None:
    assert isinstance(connection, EchoConnection)
    outlet = ConnectionOutlet(connection)
    outlet.identified()
    connection.start(Echo(outlet))
    await connection.wait_closed()


class EchoConnection(Connection):
    """A hub's connection without its limits."""

    flusher = Flusher()
    count = ConnectionCount(1_000, 1_000)
    max_unsent = 4 * LARGEST


async def _main() -> None:
    async with serve(
        _handle,
        "127.0.0.1",
        0,
        create_connection=EchoConnection,
        compression="deflate" if "deflate" in sys.argv else None,
        max_size=LARGEST,
        ping_interval=None,
        close_timeout=1.0,
    ) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    run_loop(_main())
