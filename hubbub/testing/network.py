"""A whole network in one process: the real hub, the real store, clients without sockets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Self

from hubbub.client import Client, ClientOptions
from hubbub.client.transport import MemoryTransport, Transport, WebSocketTransport
from hubbub.clock import Clock
from hubbub.config.models import NetworkConfig, NetworkFile
from hubbub.config.paths import MEMORY_STORE
from hubbub.mods.api import Mod
from hubbub.network.hub import Hub
from hubbub.network.ports import Store
from hubbub.network.server import serve_hub
from hubbub.network.store import open_store
from hubbub.protocol.messages import Card, Kind

__all__ = ["LocalNetwork"]


class LocalNetwork:
    """A running hub that clients of the same process join.

        async with LocalNetwork() as network:
            ann = await network.join("ann", kind="human")
            await ann.call("send_text_message", to="bob", text="hello")

    `sockets=True` serves it on a free loopback port and clients use real WebSockets; otherwise the
    frames go through memory. The clients it made are closed with it, unless they were before.
    """

    def __init__(
        self,
        file: NetworkFile | None = None,
        *,
        store: str | Store = "sqlite::memory:",
        mods: Sequence[Mod] = (),
        sockets: bool = False,
        clock: Clock | None = None,
    ):
        self.file = file or NetworkFile(network=NetworkConfig(auth="open"))
        place = store if isinstance(store, str) else MEMORY_STORE
        if isinstance(store, str) or "store" not in self.file.network.model_fields_set:
            # What mods keep in files lies beside the store: never in the folder of who tests.
            section = self.file.network.model_copy(update={"store": place})
            self.file = self.file.model_copy(update={"network": section})
        kept = open_store(store) if isinstance(store, str) else store
        self.hub = Hub(self.file, kept, mods=mods, clock=clock)
        self.url = ""
        self._sockets = sockets
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.hub)
        if self._sockets:
            listening = await self._stack.enter_async_context(serve_hub(self.hub, "127.0.0.1:0"))
            self.url = listening.url
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def transport(self) -> Transport:
        """A new way in."""
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
