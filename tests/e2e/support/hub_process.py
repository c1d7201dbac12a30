"""A hub with the page but without agents, in its own process.

`python -m tests.e2e.support.hub_process net.yaml`. Assembled as the app does it (config, store,
mods, page, hub, server). Prints `{"port": n, "pid": n}` once it is listening, logs to stderr, exits
with 0 on SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import structlog
import uvloop

from hubbub.config.loader import load
from hubbub.mods.loader import load_mods
from hubbub.network.hub import Hub
from hubbub.network.server import serve_hub
from hubbub.network.store import open_store
from hubbub.web.site import About, Site


def serve(config: str, pipe: Connection | None = None) -> None:
    """Serves the network of `config` until SIGTERM. Port and pid go to `pipe` instead of stdout."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(Path(config), pipe))


async def _serve(config: Path, pipe: Connection | None) -> None:
    file = load(config).file
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    hub = Hub(file, open_store(file.network.store), mods=load_mods(file.mods))
    site = Site(About(file.network.name, file.network.auth))
    async with hub, serve_hub(hub, pages=site) as listening:
        address = {"port": listening.port, "pid": os.getpid()}
        if pipe is None:
            print(json.dumps(address), flush=True)
        else:
            pipe.send(address)
            pipe.close()
        await stop.wait()


if __name__ == "__main__":
    serve(sys.argv[1])
