"""The other side of the comparison: what the `websockets` library does when nothing else is done.

    /pair/<n>/a   what it sends goes to /pair/<n>/b, and the other way round
    /fan/<n>/a    what it sends goes to every /fan/<n>/b that is connected, one after another

Coroutines as the library's documentation shows them, on asyncio's own loop, without compression.
Nothing is parsed and nothing is stored. Run as a process: `python -m benchmarks.relay` prints
`{"ports": [n]}` and serves until it is terminated.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

__all__ = ["Relay", "calm_allocator", "main"]


class Relay:
    """Who waits for whom."""

    def __init__(self) -> None:
        self._ends: dict[str, asyncio.Future[ServerConnection]] = defaultdict(
            asyncio.get_running_loop().create_future
        )
        self._fans: dict[str, list[ServerConnection]] = defaultdict(list)

    async def handle(self, ws: ServerConnection) -> None:
        """Serve one connection until it or its peer is gone."""
        assert ws.request is not None
        _, kind, number, end = ws.request.path.split("/")
        try:
            if kind == "pair":
                await self._pair(ws, number, end)
            elif end == "a":
                await self._fan(ws, self._fans[number])
            else:
                self._fans[number].append(ws)
                await ws.wait_closed()
        except ConnectionClosed:
            return

    async def _pair(self, ws: ServerConnection, number: str, end: str) -> None:
        self._ends[f"{number}/{end}"].set_result(ws)
        peer = await self._ends[f"{number}/{'b' if end == 'a' else 'a'}"]
        async for frame in ws:
            await peer.send(frame)

    async def _fan(self, ws: ServerConnection, receivers: list[ServerConnection]) -> None:
        async for frame in ws:
            for receiver in receivers:
                await receiver.send(frame)


def calm_allocator() -> None:
    """Spare the relay a handicap that is not its own.

    asyncio's loop asks for 256 KiB per read and shrinks them to what came. By default glibc maps
    and unmaps such a block each time, about 12 us per message; once it has freed a larger block, it
    keeps them on the heap. A relay that runs for long gets there by chance; this one starts there.
    """
    del_me = bytearray(1 << 20)
    del del_me


async def main() -> None:
    """Serve on a free port of this machine."""
    calm_allocator()
    relay = Relay()
    async with serve(relay.handle, "127.0.0.1", 0, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        print(json.dumps({"ports": [port]}), flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main())
