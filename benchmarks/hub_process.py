"""Hubs without agents, in one process of their own: `python -m benchmarks.hub_process FILE...`.

Composed as the app composes them (store, mods, hub, server), on free ports that it prints as
`{"ports": [n, ...]}`. Ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from hubbub.app.process import loading

with loading():
    from hubbub.app.process import run_loop
    from hubbub.config.loader import load
    from hubbub.mods.loader import load_mods
    from hubbub.network.cluster.owner import GatewayDoor
    from hubbub.network.hub import Hub
    from hubbub.network.server import serve_hub
    from hubbub.network.store import open_store

__all__ = ["main"]


async def main(configs: Sequence[Path]) -> None:
    """Serve the networks of `configs` until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with AsyncExitStack() as stack:
        ports = []
        for config in configs:
            file = load(config).file
            hub = Hub(file, open_store(file.network.store), mods=load_mods(file.mods))
            await stack.enter_async_context(hub)
            doors = None
            if (token := file.network.gateway_token) is not None:
                door = GatewayDoor(hub.kernel, hub.gateway, hub.services.registry, token)
                doors = await stack.enter_async_context(door.open(hub.listen))
            serving = serve_hub(hub, "127.0.0.1:0", doors=doors)
            listening = await stack.enter_async_context(serving)
            ports.append(listening.port)
        print(json.dumps({"ports": ports}), flush=True)
        await stop.wait()


if __name__ == "__main__":
    run_loop(main([*map(Path, sys.argv[1:])]))
