"""The doors that a network's config opens on the hub's port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from hubbub.network.hub import Hub
from hubbub.network.path_switch import Doors

__all__ = ["open_doors"]


@asynccontextmanager
async def open_doors(hub: Hub, host: str) -> AsyncIterator[Doors]:
    """Within, they are open; the hub listens on `host`."""
    network, gateway = hub.config, hub.gateway
    doors: dict[str, Callable[[Callable[[], None]], asyncio.Protocol]] = {}
    async with AsyncExitStack() as stack:
        if network.mcp:
            from hubbub.interop.mcp import http as mcp  # an extra

            door = mcp.HttpDoor(gateway.attach, host, network.hosts)
            doors[mcp.PATH] = (await stack.enter_async_context(door)).protocol
        if network.openai:
            from hubbub.interop.openai import door as openai

            own = openai.OpenAiDoor(gateway.attach, gateway.admission.owner_of, host, network.hosts)
            doors[openai.PATH] = (await stack.enter_async_context(own)).protocol
        yield doors
