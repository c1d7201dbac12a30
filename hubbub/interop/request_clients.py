"""In-process clients for participants who connect by requests. Each stays connected while requests
keep coming.

Authentication is that of any client: name and token go to the hub.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Generic, Self, TypeAlias, TypeVar

from hubbub.client import Client, ClientOptions, Incoming
from hubbub.client.transport import MemoryTransport
from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Kind
from hubbub.protocol.thread_ids import is_participant_id
from hubbub.protocol.wire import Inlet, Outlet
from hubbub.waiting import cancel

__all__ = ["Attach", "Owner", "RequestClient", "RequestClients", "bearer", "refusal_status"]

Attach: TypeAlias = Callable[[Outlet, str], Inlet]
"""Attaches a connection to the hub, for a peer address."""
Owner: TypeAlias = Callable[[str], Awaitable[tuple[str, Kind] | None]]
"""Returns the id and kind of a token's owner, or None for an unknown token."""
ACK_S = 2.0
"""Longest delay, in seconds, before a handled event is acknowledged."""
IDLE_S = 300.0
"""Seconds without a request until a client disconnects."""


def bearer(authorization: str) -> str:
    """The token of an `Authorization` header; empty if there is none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def refusal_status(error: OperationError) -> int:
    """The HTTP status for a client that the hub did not let join."""
    if error.temporary:
        return 429 if error.code == ErrorCode.RATE_LIMITED else 503
    return 401 if error.code == ErrorCode.AUTH_FAILED else 403


class _InFlight(AbstractContextManager[None]):  # a generator costs three times as much
    __slots__ = ("_client",)

    def __init__(self, client: RequestClient):
        self._client = client

    def __enter__(self) -> None:
        self._client.count(1)

    def __exit__(self, *_: object) -> None:
        self._client.count(-1)


class RequestClient:
    """The client of one participant. It runs in its own task until `leave`."""

    def __init__(self, client: Client):
        self.client = client
        self._lost = False
        self._requests = self._unacknowledged = self._last_seq = 0
        self._delayed_ack: asyncio.Task[None] | None = None
        self._last_active = asyncio.get_running_loop().time()
        self._leaving, self._joined = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """A context in which requests can be answered. The client has joined."""
        listening = asyncio.create_task(self._listen())
        try:
            yield
        finally:
            await cancel(listening)

    async def _listen(self) -> None:
        try:
            async for item in self.client.events():
                self._handle(item)
                if isinstance(item, Event):
                    await self.acknowledge(item.seq)
        except ConnectionLost as error:
            self._lost = True
            self._on_lost(error)

    def _handle(self, item: Incoming) -> None:
        """Called with everything that the hub sends besides results."""

    def _on_lost(self, error: ConnectionLost) -> None:
        """Called when the hub has closed the connection for good."""

    @property
    def is_lost(self) -> bool:
        """Whether the hub closed the connection for good."""
        return self._lost

    @property
    def is_gone(self) -> bool:
        return self._task.done() or (self._joined.is_set() and self.is_lost)

    @property
    def is_ready(self) -> bool:
        """Whether requests can be answered now."""
        return self._joined.is_set() and not self.is_gone

    def in_flight(self) -> AbstractContextManager[None]:
        """A context that counts one request as in flight."""
        return _InFlight(self)

    def count(self, change: int) -> None:
        """Change the number of requests in flight."""
        self._requests += change
        self._last_active = asyncio.get_running_loop().time()

    async def acknowledge(self, seq: int) -> None:
        """Acknowledge an event. Acknowledgements are batched, since each is a write; a person's
        client starts at the latest event anyway, whatever its cursor."""
        self._last_seq, self._unacknowledged = seq, self._unacknowledged + 1
        if 4 * self._unacknowledged >= self.client.hello.limits.unacknowledged:
            await self._send_ack()
        elif self._unacknowledged == 1:
            self._delayed_ack = asyncio.create_task(self._send_ack(ACK_S))

    async def _send_ack(self, after_s: float = 0.0) -> None:
        await asyncio.sleep(after_s)
        if self._unacknowledged:
            self._unacknowledged = 0
            await self.client.ack(self._last_seq)

    def is_idle(self, now: float) -> bool:
        return self.is_gone or (not self._requests and now - self._last_active > IDLE_S)

    async def wait_joined(self) -> None:
        """Wait until the client has joined. Raises `OperationError` and `ConnectionLost`."""
        joined = asyncio.create_task(self._joined.wait())
        try:
            await asyncio.wait({joined, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            joined.cancel()
        if self._task.done():
            self._task.result()

    async def _run(self) -> None:
        async with self.client, self.serving():
            self._joined.set()
            await self._leaving.wait()

    async def leave(self) -> None:
        self._leaving.set()
        if self._delayed_ack is not None:
            self._delayed_ack.cancel()
        await asyncio.wait({self._task}, timeout=1.0)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


C = TypeVar("C", bound=RequestClient)


class RequestClients(Generic[C]):
    """A context that holds the connected clients. `build` wraps a client in one."""

    def __init__(self, attach: Attach, build: Callable[[Client], C]):
        self._attach, self._build = attach, build
        self._clients: dict[bytes, C] = {}
        """By digest of their key."""

    async def __aenter__(self) -> Self:
        self._cleanup = asyncio.create_task(self._remove_idle())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._cleanup.cancel()
        for client in list(self._clients.values()):
            await client.leave()

    def connected(self, key: str) -> C | None:
        """The client that joined with this key, if it is ready."""
        client = self._clients.get(_digest(key))
        return client if client is not None and client.is_ready else None

    async def join(self, name: str, kind: Kind, token: str, address: str, key: str) -> C:
        """The client of `name`, once it has joined. `key` is everything a request authenticates
        with.

        Raises `OperationError` if the hub refuses the token. That can take a while, but delays no
        other client."""
        id = _digest(key)
        client = self._clients.get(id)
        if client is None or client.is_gone:
            previous = client
            # A person's program reads what it missed; an agent gets it delivered.
            inner = Client(
                MemoryTransport(lambda outlet: self._attach(outlet, address)),
                name,
                kind,
                token=token or None,
                cursor="latest" if kind == "human" else None,
                options=ClientOptions(schemas=kind != "human"),
            )
            client = self._clients[id] = self._build(inner)
            if previous is not None:
                await previous.leave()
        try:
            await client.wait_joined()
        except HubbubError:
            if self._clients.get(id) is client:
                del self._clients[id]
            raise
        return client

    async def join_person(self, owner: Owner, token: str, address: str) -> C:
        """The client of the person who owns the token. In an open network, where people have no
        tokens, `token` is the person's name. Raises `OperationError` and `ConnectionLost`."""
        if (client := self.connected(token)) is not None:
            return client
        owned, proof = await owner(token), token
        if owned is not None:
            name, kind = owned
        elif is_participant_id(token) and not token.startswith("hub_"):
            name, kind, proof = token, "human", ""
        else:  # the hub refuses it, with its usual delay
            name, kind = "everyone", "human"
        if kind != "human":
            reason = f"this is the token of {name!r}; only people can connect here"
            raise OperationError(ErrorCode.FORBIDDEN, reason)
        try:
            return await self.join(name, kind, proof, address, key=token)
        except OperationError as error:
            if error.temporary:
                raise
            reason = (
                "not the token of a person in this network (`hubbub tokens add NAME`); with "
                "`auth: open` it is any name that no agent has"
            )
            raise OperationError(ErrorCode.AUTH_FAILED, reason) from None

    async def _remove_idle(self) -> None:
        while True:
            await asyncio.sleep(IDLE_S / 5)
            now = asyncio.get_running_loop().time()
            for id, client in list(self._clients.items()):
                if client.is_idle(now):
                    self._clients.pop(id, None)
                    await client.leave()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
