"""The doors that a network's config opens on the hub's port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from hubbub.network.hub import Hub
from hubbub.network.path_switch import Doors
from hubbub.protocol.messages import Card

__all__ = ["open_doors"]


@asynccontextmanager
async def open_doors(hub: Hub, host: str, cards: Mapping[str, Card]) -> AsyncIterator[Doors]:
    """Within, they are open; the hub listens on `host`, `cards` are those of its agents."""
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
        if network.a2a is not None:
            from hubbub.interop.a2a import door as a2a  # an extra

            askers = {
                name: gateway.admission.lend(name)
                for name in hub.kernel.state.memories.owners(a2a.PUSH_KEY)
            }
            asked = (network.a2a, cards, gateway.attach, gateway.admission.owner_of)
            other = await stack.enter_async_context(
                a2a.A2aDoor(*asked, host, network.hosts, askers)
            )
            doors[a2a.PATH] = doors[a2a.WELL_KNOWN] = other.protocol
        yield doors
