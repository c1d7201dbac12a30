"""Raw peers of hubs that are processes of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hubbub.client import WebSocketTransport
from tests.interaction.peers import Peer

__all__ = ["peer"]


@asynccontextmanager
async def peer(url: str) -> AsyncIterator[Peer]:
    """A socket that has received `hello`."""
    socket = Peer(await WebSocketTransport(url).open())
    try:
        socket.hello = await socket.expect("hello")
        yield socket
    finally:
        await socket.close()
