"""Clients in the hub's process, for participants who ask by requests: each stays for as long as it
is asked for.

Who asks is proven as everywhere: name and token go to the hub as those of any client.
"""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Generic, Self, TypeAlias, TypeVar

from hubbub.client import Client, ClientOptions
from hubbub.client.transport import MemoryTransport
from hubbub.errors import HubbubError, OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Kind
from hubbub.protocol.thread_ids import is_participant_id
from hubbub.protocol.wire import Inlet, Outlet

__all__ = ["Attach", "Owner", "RequestClient", "RequestClients", "bearer"]

Attach: TypeAlias = Callable[[Outlet, str], Inlet]
"""Leads to the hub, for a peer at an address."""
Owner: TypeAlias = Callable[[str], Awaitable[tuple[str, Kind] | None]]
"""Whose token it is, and what they are; None: nobody's."""
ACK_S = 2.0
"""Seconds until an event that was taken is acknowledged, at most."""
IDLE_S = 300.0
"""Seconds without a request after which a participant leaves."""


def bearer(authorization: str) -> str:
    """The token of a header `Authorization`; empty if there is none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


class _InFlight(AbstractContextManager[None]):  # a generator's costs three times as much
    __slots__ = ("_client",)

    def __init__(self, client: RequestClient):
        self._client = client

    def __enter__(self) -> None:
        self._client.count(1)

    def __exit__(self, *_: object) -> None:
        self._client.count(-1)


class RequestClient(ABC):
    """One participant: a task of its own, until it is asked to leave."""

    def __init__(self, client: Client):
        self.client = client
        self._requests = self._untold = self._upto = 0
        self._due: asyncio.Task[None] | None = None
        self._seen = asyncio.get_running_loop().time()
        self._leaving, self._joined = asyncio.Event(), asyncio.Event()
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
        return self._task.done() or (self._joined.is_set() and self.lost)

    @property
    def here(self) -> bool:
        """Whether its requests can be answered now."""
        return self._joined.is_set() and not self.gone

    def asking(self) -> AbstractContextManager[None]:
        """Within, it has a request."""
        return _InFlight(self)

    def count(self, more: int) -> None:
        """It has a request more, or less."""
        self._requests += more
        self._seen = asyncio.get_running_loop().time()

    async def heard(self, seq: int) -> None:
        """An event is taken. The hub is told of several at once: each acknowledgement is a write,
        and a person's client begins with what is latest, wherever it stood."""
        self._upto, self._untold = seq, self._untold + 1
        if 4 * self._untold >= self.client.hello.limits.unacknowledged:
            await self._acknowledge()
        elif self._untold == 1:
            self._due = asyncio.create_task(self._acknowledge(ACK_S))

    async def _acknowledge(self, after_s: float = 0.0) -> None:
        await asyncio.sleep(after_s)
        if self._untold:
            self._untold = 0
            await self.client.ack(self._upto)

    def idle(self, now: float) -> bool:
        return self.gone or (not self._requests and now - self._seen > IDLE_S)

    async def joined(self) -> None:
        """Wait until it is there. Raises `OperationError` and `ConnectionLost`."""
        joined = asyncio.create_task(self._joined.wait())
        try:
            await asyncio.wait({joined, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            joined.cancel()
        if self._task.done():
            self._task.result()

    async def _stay(self) -> None:
        async with self.client, self.staying():
            self._joined.set()
            await self._leaving.wait()

    async def leave(self) -> None:
        self._leaving.set()
        if self._due is not None:
            self._due.cancel()
        await asyncio.wait({self._task}, timeout=1.0)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


C = TypeVar("C", bound=RequestClient)


class RequestClients(Generic[C]):
    """A context: those who are here. `make` makes one of its client."""

    def __init__(self, attach: Attach, make: Callable[[Client], C]):
        self._attach, self._make = attach, make
        self._clients: dict[bytes, C] = {}
        """By digest of what proves them."""

    async def __aenter__(self) -> Self:
        self._watch = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._watch.cancel()
        for client in self._clients.values():
            await client.leave()

    def here(self, key: str) -> C | None:
        """Who has come with this key before, and is here."""
        client = self._clients.get(_digest(key))
        return client if client is not None and client.here else None

    async def of(self, name: str, kind: Kind, token: str, address: str, key: str) -> C:
        """Who brings this token, when it is there; `key` is all that a request proves it by.

        Raises `OperationError` where the hub refuses it, which with a wrong one may take a while:
        nobody else waits for that."""
        id = _digest(key)
        found = self._clients.get(id)
        if found is None or found.gone:
            transport, before = MemoryTransport(lambda outlet: self._attach(outlet, address)), found
            # What a person's program has missed it looks up; an agent's is handed out to it.
            client = Client(
                transport,
                name,
                kind,
                token=token or None,
                cursor="latest" if kind == "human" else None,
                options=ClientOptions(schemas=kind != "human"),
            )
            found = self._clients[id] = self._make(client)
            if before is not None:
                await before.leave()
        try:
            await found.joined()
        except HubbubError:
            if self._clients.get(id) is found:
                del self._clients[id]
            raise
        return found

    async def person(self, owner: Owner, token: str, address: str) -> C:
        """The person whose token it is; in an open network, where people have none, the person of
        that name. Raises `OperationError` and `ConnectionLost`."""
        if (known := self.here(token)) is not None:
            return known
        found, proof = await owner(token), token
        if found is not None:
            name, kind = found
        elif is_participant_id(token) and not token.startswith("hub_"):
            name, kind, proof = token, "human", ""
        else:  # the hub says so, in its own time
            name, kind = "everyone", "human"
        if kind != "human":
            words = f"this is the token of {name!r}, and only people ask here"
            raise OperationError(ErrorCode.FORBIDDEN, words)
        try:
            return await self.of(name, kind, proof, address, key=token)
        except OperationError as error:
            if error.temporary:
                raise
            words = "this is no token of a person here (`hubbub tokens add NAME`)"
            raise OperationError(ErrorCode.AUTH_FAILED, words) from None

    async def _look(self) -> None:
        """Let those leave who ask no more."""
        while True:
            await asyncio.sleep(IDLE_S / 5)
            now = asyncio.get_running_loop().time()
            for id, client in list(self._clients.items()):
                if client.idle(now):
                    self._clients.pop(id, None)
                    await client.leave()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
