"""A gateway's server: it holds WebSockets and forwards everything else to the owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from hubbub.clock import SystemClock
from hubbub.network.cluster.holder import SessionHolder
from hubbub.network.cluster.messages import Greeting
from hubbub.network.connection import Connection
from hubbub.network.http import refusal
from hubbub.network.server import (
    Listening,
    Watch,
    bind,
    connection_class,
    parse_listen,
    refuse_open,
    serve_sockets,
)

__all__ = ["serve_gateway"]

HEAD_BYTES = 64 * 1024
HEAD_WITHIN_S = 10.0
DRAIN_WITHIN_S = 5.0
"""Seconds to wait for answers to calls when the gateway stops."""
Owner = Callable[[], "tuple[str, int] | None"]
_NO_OWNER = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Retry-After: 1\r\nContent-Length: 54\r\nConnection: close\r\n\r\n"
    b"the network moves to another hub; try again in a while"
)


@asynccontextmanager
async def serve_gateway(
    holder: SessionHolder, greeting: Greeting, listen: str, owner: Owner
) -> AsyncIterator[Listening]:
    """Serve on `listen` until the context ends, then ask all clients to reconnect. `owner` returns
    the owner's address.

    Raises `UserError` as `serve_hub`.
    """
    host, port = parse_listen(listen)
    refuse_open(host, open_to_all=greeting.open_to_all)
    sockets = bind(host, port)

    async def respond(connection: ServerConnection, request: Request) -> Response | None:
        reason = refusal(request.headers, host, greeting.hosts)
        return connection.respond(HTTPStatus.FORBIDDEN, f"{reason}\n") if reason else None

    connection_type = connection_class(holder.limits)

    def switch(*args: Any, **kwargs: Any) -> _Switch:  # the library's own
        return _Switch(partial(connection_type, *args, **kwargs), owner)

    async with serve_sockets(
        sockets,
        Watch(holder, SystemClock()),
        cast("type[Connection]", switch),  # the library only calls it
        respond,
        compression=greeting.compression,
    ):
        try:
            yield Listening(host, sockets.getsockname()[1])
        finally:
            await holder.drain(1.0, DRAIN_WITHIN_S)


class _Forwarder(asyncio.Protocol):
    """One direction of a forwarded connection."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Forwarder | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of asyncio's

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        other, self.other = self.other, None
        if other is not None and other.transport is not None:
            other.transport.close()


class _Switch(_Forwarder):
    """A connection until its first request, which decides where it goes."""

    def __init__(self, usual: Callable[[], asyncio.Protocol], owner: Owner):
        super().__init__()
        self._usual, self._owner = usual, owner
        self._head = b""
        self._dialling: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(HEAD_WITHIN_S, transport.abort)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            super().data_received(data)
            return
        self._head += data
        if self._dialling is not None:
            return
        if b"\r\n\r\n" not in self._head and len(self._head) < HEAD_BYTES:
            return
        self._timer.cancel()
        assert self.transport is not None
        head = self._head.partition(b"\r\n\r\n")[0].lower()
        if b"\r\nupgrade: websocket" in head:
            usual = self._usual()
            self.transport.set_protocol(usual)
            usual.connection_made(self.transport)
            usual.data_received(self._head)
        else:
            self.transport.pause_reading()
            self._dialling = asyncio.get_running_loop().create_task(self._pass_through())

    async def _pass_through(self) -> None:
        assert self.transport is not None
        there, owner = _Forwarder(), self._owner()
        try:
            if owner is None:
                raise ConnectionError
            await asyncio.get_running_loop().create_connection(lambda: there, *owner)
        except OSError:
            self.transport.write(_NO_OWNER)
            self.transport.close()
            return
        assert there.transport is not None
        self.other, there.other = there, self
        there.transport.write(self._head)
        self._head = b""
        self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)
