"""One request on a connection of the hub's port, answered whole or as server-sent events.

A connection ends with its answer: what a proxy asks next on one may be the hub's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import h11
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHeaderValue

__all__ = ["BadRequest", "HttpServer", "Request", "Response"]

READ = 65_536
HEAD_S, BODY_S = 10.0, 60.0
"""Seconds in which the head and the body of a request must have come."""
STALLED_S = 10.0
"""Seconds in which somebody must take what is written; then the connection is closed."""


class BadRequest(Exception):
    """This is no request that can be read."""

    def __init__(self, status: int, why: str):
        self.status = status
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    """Without what stands after `?`."""
    headers: Headers
    address: str
    """Of the peer."""


class Response:
    """What a request is answered with. Its methods raise `ConnectionError` when nobody takes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader, self._writer = reader, writer
        self._wire = h11.Connection(h11.SERVER)
        self.begun = False

    async def request(self) -> Request:
        """The head. Raises `BadRequest`."""
        async with asyncio.timeout(HEAD_S):
            event = await self._next()
        if not isinstance(event, h11.Request):
            raise ConnectionResetError("there is no request")
        peer = self._writer.get_extra_info("peername")
        try:
            headers = Headers((k.decode("ascii"), v.decode("latin-1")) for k, v in event.headers)
        except InvalidHeaderValue as error:
            raise BadRequest(400, f"no proper request: {error}") from None
        return Request(
            event.method.decode("ascii"),
            event.target.decode("ascii").partition("?")[0],
            headers,
            str(peer[0]) if peer else "",
        )

    async def body(self, most: int) -> bytes:
        """What was sent, at most so many bytes. Raises `BadRequest`."""
        found = bytearray()
        async with asyncio.timeout(BODY_S):
            while True:
                match await self._next():
                    case h11.Data(data=data):
                        found += data
                        if len(found) > most:
                            raise BadRequest(413, f"a request has at most {most} bytes")
                    case h11.EndOfMessage():
                        return bytes(found)
                    case _:
                        raise ConnectionResetError("it was closed before the request had come")

    async def _next(self) -> object:
        while True:
            try:
                event = self._wire.next_event()
            except h11.RemoteProtocolError as error:
                raise BadRequest(error.error_status_hint, f"no proper request: {error}") from None
            if event is not h11.NEED_DATA:
                return event
            if self._wire.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                self._writer.write(self._wire.send(go_on) or b"")
            self._wire.receive_data(await self._reader.read(READ))

    async def left(self) -> None:
        """Wait until the peer has closed."""
        with suppress(ConnectionError):
            while await self._reader.read(READ):
                pass

    async def whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Answer at once."""
        await self.begin(status, {**headers, "content-length": str(len(body))})
        await self.write(body)

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin an answer whose body is written piece by piece."""
        self.begun = True
        told = {**headers, "connection": "close"}
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in told.items()]
        response = h11.Response(status_code=status, headers=encoded)
        self._writer.write(self._wire.send(response) or b"")

    async def write(self, data: bytes) -> None:
        with suppress(h11.LocalProtocolError):  # what answers HEAD has no body
            self._writer.write(self._wire.send(h11.Data(data=data)) or b"")
        try:
            async with asyncio.timeout(STALLED_S):
                await self._writer.drain()
        except TimeoutError:
            self._writer.transport.abort()
            raise ConnectionAbortedError("nobody reads the answer") from None

    def close(self) -> None:
        """The answer is complete, if it was begun."""
        with suppress(h11.LocalProtocolError):
            self._writer.write(self._wire.send(h11.EndOfMessage()) or b"")
        self._writer.close()


class HttpServer:
    """A context, in which `protocol` makes what a connection is spoken with."""

    def __init__(self, handle: Callable[[Response], Awaitable[None]]):
        """`handle` answers each; when it is cancelled it ends without an answer."""
        self._handle = handle
        self._open: set[asyncio.Task[None]] = set()

    def protocol(self) -> asyncio.Protocol:
        """Speaks HTTP on one connection."""
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), self._greet)

    async def close(self) -> None:
        """End what is under way."""
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(Response(reader, writer)))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, response: Response) -> None:
        with suppress(OSError, TimeoutError):  # whoever has asked has gone, or says nothing
            try:
                await self._handle(response)
            finally:
                response.close()
