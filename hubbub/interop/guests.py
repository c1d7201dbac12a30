"""Participants who ask by requests: each has one client in the hub's process, for as long as it
asks.

Who asks is proven as everywhere: name and token go to the hub as those of any client.
"""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Generic, Self, TypeAlias, TypeVar

from hubbub.client import Client, ClientOptions
from hubbub.client.memory import MemoryTransport
from hubbub.errors import HubbubError
from hubbub.protocol.messages import Kind
from hubbub.protocol.wire import Inlet, Outlet

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["IDLE_S", "Attach", "Guest", "Guests", "bearer"]

Attach: TypeAlias = Callable[[Outlet, str], Inlet]
"""Leads to the hub, for a peer at an address."""
IDLE_S = 300.0
"""Seconds without a request after which a participant leaves."""


def bearer(authorization: str) -> str:
    """The token of a header `Authorization`; empty if there is none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


class Guest(ABC):
    """One participant: a task of its own, until it is asked to leave."""

    def __init__(self, client: Client):
        self.client = client
        self._requests = 0
        self._seen = asyncio.get_running_loop().time()
        self._leaving, self._there = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._stay())

    @abstractmethod
    def staying(self) -> AbstractAsyncContextManager[None]:
        """Within, its requests can be answered. The client has joined."""

    @property
    @abstractmethod
    def lost(self) -> bool:
        """Whether the hub has closed for good."""

    @property
    def gone(self) -> bool:
        return self._task.done() or (self._there.is_set() and self.lost)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Within, it has a request."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self._seen = asyncio.get_running_loop().time()

    def idle(self, now: float) -> bool:
        return self.gone or (not self._requests and now - self._seen > IDLE_S)

    async def joined(self) -> None:
        """Wait until it is there. Raises `OperationError` and `ConnectionLost`."""
        there = asyncio.create_task(self._there.wait())
        try:
            await asyncio.wait({there, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            there.cancel()
        if self._task.done():
            self._task.result()

    async def _stay(self) -> None:
        async with self.client, self.staying():
            self._there.set()
            await self._leaving.wait()

    async def leave(self) -> None:
        self._leaving.set()
        await asyncio.wait({self._task}, timeout=1.0)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


G = TypeVar("G", bound=Guest)


class Guests(Generic[G]):
    """A context: those who are here. `make` makes one of its client."""

    def __init__(self, attach: Attach, make: Callable[[Client], G]):
        self._attach, self._make = attach, make
        self._guests: dict[str, G] = {}

    async def __aenter__(self) -> Self:
        self._watch = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._watch.cancel()
        for guest in self._guests.values():
            await guest.leave()

    async def of(self, name: str, kind: Kind, token: str, address: str) -> G:
        """Who brings this token, when it is there. Raises `OperationError` where the hub refuses
        it, which with a wrong one may take a while: nobody else waits for that."""
        key = f"{name} {hashlib.sha256(token.encode()).hexdigest()}"
        guest = self._guests.get(key)
        if guest is None or guest.gone:
            transport, before = MemoryTransport(lambda outlet: self._attach(outlet, address)), guest
            # What a person's program has missed it looks up; an agent's is handed out to it.
            client = Client(
                transport,
                name,
                kind,
                token=token or None,
                cursor="latest" if kind == "human" else None,
                options=ClientOptions(schemas=kind != "human"),
            )
            guest = self._guests[key] = self._make(client)
            if before is not None:
                await before.leave()
        try:
            await guest.joined()
        except HubbubError:
            if self._guests.get(key) is guest:
                del self._guests[key]
            raise
        return guest

    async def _look(self) -> None:
        """Let those leave who ask no more."""
        while True:
            await asyncio.sleep(IDLE_S / 5)
            now = asyncio.get_running_loop().time()
            for key, guest in list(self._guests.items()):
                if guest.idle(now):
                    self._guests.pop(key, None)
                    await guest.leave()
