"""Opens the doors that the network's config enables on the hub's port."""

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
    """Open the doors for the duration of the context.

    `host` is the address the hub listens on, `cards` are its agents' cards.
    """
    network, gateway = hub.config, hub.gateway
    doors: dict[str, Callable[[Callable[[], None]], asyncio.Protocol]] = {}
    async with AsyncExitStack() as stack:
        if network.mcp:
            from hubbub.interop.mcp import http as mcp  # an extra

            mcp_door = mcp.HttpDoor(gateway.attach, host, network.hosts)
            doors[mcp.PATH] = (await stack.enter_async_context(mcp_door)).protocol
        if network.openai:
            from hubbub.interop.openai import door as openai

            openai_door = openai.OpenAiDoor(
                gateway.attach, gateway.admission.owner_of, host, network.hosts
            )
            doors[openai.PATH] = (await stack.enter_async_context(openai_door)).protocol
        if network.a2a is not None:
            from hubbub.interop.a2a import door as a2a  # an extra

            askers = {
                name: gateway.admission.lend(name)
                for name in hub.kernel.state.memories.owners(a2a.PUSH_KEY)
            }
            a2a_door = a2a.A2aDoor(
                network.a2a,
                cards,
                gateway.attach,
                gateway.admission.owner_of,
                host,
                network.hosts,
                askers,
            )
            protocol = (await stack.enter_async_context(a2a_door)).protocol
            doors[a2a.PATH] = doors[a2a.WELL_KNOWN] = protocol
        yield doors
