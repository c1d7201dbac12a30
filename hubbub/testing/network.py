"""A whole network in one process: the real hub, the real store, clients without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Self

from hubbub.client import Client, ClientOptions
from hubbub.client.transport import MemoryTransport, Transport, WebSocketTransport
from hubbub.clock import Clock, SystemClock
from hubbub.config.models import NetworkConfig, NetworkFile
from hubbub.config.paths import MEMORY_STORE
from hubbub.mods.api import Mod
from hubbub.network.cluster.holder import SessionHolder
from hubbub.network.cluster.owner import GatewayDoor
from hubbub.network.cluster.serving import serve_gateway
from hubbub.network.cluster.uplink import Uplink
from hubbub.network.hub import Hub
from hubbub.network.ports import Store
from hubbub.network.server import Listening, serve_hub
from hubbub.network.store import open_store
from hubbub.protocol.messages import Card, Kind

__all__ = ["LocalNetwork"]


_TOKEN = "a token for gateways"


class LocalNetwork:
    """A running hub that clients of the same process join.

        async with LocalNetwork() as network:
            ann = await network.join("ann", kind="human")
            await ann.call("send_text_message", to="bob", text="hello")

    With `sockets=True` it listens on a free loopback port, and clients use real WebSockets;
    otherwise frames pass through memory. With `gateway=True`, clients connect to a gateway in front
    of the hub. Closing the network closes its clients.
    """

    def __init__(
        self,
        file: NetworkFile | None = None,
        *,
        store: str | Store = "sqlite::memory:",
        mods: Sequence[Mod] = (),
        sockets: bool = False,
        gateway: bool = False,
        clock: Clock | None = None,
    ):
        self.file = file or NetworkFile(network=NetworkConfig(auth="open"))
        place = store if isinstance(store, str) else MEMORY_STORE
        if isinstance(store, str) or "store" not in self.file.network.model_fields_set:
            # Mods write files next to the store, which must not be the test's working directory.
            section = self.file.network.model_copy(update={"store": place})
            self.file = self.file.model_copy(update={"network": section})
        opened = open_store(store) if isinstance(store, str) else store
        self.hub = Hub(self.file, opened, mods=mods, clock=clock)
        self.url = ""
        self.uplink: Uplink | None = None
        """The gateway's connection to the hub."""
        self._sockets, self._gateway = sockets or gateway, gateway
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        enter = self._stack.enter_async_context
        hub = await enter(self.hub)
        if self._gateway:
            door = GatewayDoor(hub.kernel, hub.gateway, hub.services.registry, _TOKEN)
            doors = await enter(door.open(hub.listen))
            listening = await enter(serve_hub(hub, "127.0.0.1:0", doors=doors))
            gateway, self.uplink = await enter(_gateway(listening))
            self.url = gateway.url
        elif self._sockets:
            self.url = (await enter(serve_hub(hub, "127.0.0.1:0"))).url
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def transport(self) -> Transport:
        """A transport for one more client."""
        return (
            WebSocketTransport(self.url)
            if self._sockets
            else MemoryTransport(self.hub.gateway.attach)
        )

    async def join(
        self,
        participant: str,
        kind: Kind = "agent",
        *,
        token: str | None = None,
        card: Card | None = None,
        turns: bool = False,
        observe: bool = False,
    ) -> Client:
        """A connected client. Raises what `Client.__aenter__` raises."""
        client = Client(
            self.transport(),
            participant,
            kind,
            token=token,
            turns=turns,
            options=ClientOptions(card=card, observe=observe),
        )
        return await self._stack.enter_async_context(client)


@asynccontextmanager
async def _gateway(hub: Listening) -> AsyncIterator[tuple[Listening, Uplink]]:
    """Run a gateway in front of the hub."""
    async with asyncio.TaskGroup() as tasks:

        def spawn(work: Coroutine[object, object, None]) -> None:
            tasks.create_task(work)

        holder = SessionHolder(SystemClock().monotonic, spawn)
        uplink = Uplink(holder, [(hub.host, hub.port)], _TOKEN)
        greeting = await uplink.first()
        running = tasks.create_task(uplink.run())
        async with serve_gateway(holder, greeting, "127.0.0.1:0", lambda: uplink.owner) as gateway:
            yield gateway, uplink
        uplink.close()
        running.cancel()
