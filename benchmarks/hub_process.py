"""A hub without agents, in a process of its own: `python -m benchmarks.hub_process network.yaml`.

Composed as the app composes it (store, mods, hub, server), on a free port that it prints as
`{"port": n}`. Ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

from hubbub.app.process import loading

with loading():
    from hubbub.app.process import run_loop
    from hubbub.config.loader import load
    from hubbub.mods.loader import load_mods
    from hubbub.network.hub import Hub
    from hubbub.network.server import serve_hub
    from hubbub.network.store import open_store

__all__ = ["main"]


async def main(config: Path) -> None:
    """Serve the network of `config` until SIGTERM."""
    file = load(config).file
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    hub = Hub(file, open_store(file.network.store), mods=load_mods(file.mods))
    async with hub, serve_hub(hub, "127.0.0.1:0") as listening:
        print(json.dumps({"port": listening.port}), flush=True)
        await stop.wait()


if __name__ == "__main__":
    run_loop(main(Path(sys.argv[1])))
