"""A small HTTP server for requests from programs elsewhere: h11 on asyncio's streams.

One request on each connection, which must have come as a whole within its time and size. What is
not a proper request is answered with the status that says so, and nothing else happens.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus

import h11
from pydantic import JsonValue

__all__ = ["HttpRefused", "HttpReply", "HttpRequest", "InboundLimits", "listening"]

READ = 65_536
MOST_LINGERING = 1_000_000
"""Bytes that are read and thrown away after a refusal."""
LAST_WORDS_S = 2.0
"""Seconds in which an answer must be taken."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    path: str
    """Without what stands after `?`."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: HTTPStatus
    value: Mapping[str, JsonValue] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpRefused(Exception):
    """The request cannot be taken."""

    def __init__(self, status: HTTPStatus, why: str, **headers: str):
        self.reply = HttpReply(status, {"error": why}, headers)


@dataclass(frozen=True, slots=True)
class InboundLimits:
    body: int
    """Bytes."""
    seconds: float
    """In which a request must have come."""
    connections: int
    """At once."""


Check = Callable[[str, str], None]
"""Looks at method and path before the body is read. Raises `HttpRefused`."""
Handle = Callable[[HttpRequest], Awaitable[HttpReply]]


class _Door:
    def __init__(self, limits: InboundLimits, check: Check, handle: Handle):
        self._limits, self._check, self._handle = limits, check, handle
        self._open: set[asyncio.Task[None]] = set()

    async def enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio serves each connection in a task"
        self._open.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError):
            pass  # whoever has called has gone, or takes no answer
        except asyncio.CancelledError:
            pass  # by `leave`; asyncio's streams would report it as a failure
        finally:
            self._open.discard(task)
            writer.close()

    async def leave(self) -> None:
        """End what is under way."""
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = h11.Connection(h11.SERVER)
        reply = await self._reply(wire, reader, writer)
        body = json.dumps(reply.value, ensure_ascii=False).encode()
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
            **reply.headers,
        }
        response = h11.Response(status_code=reply.status, headers=list(headers.items()))
        writer.write(wire.send(response) or b"")
        with suppress(h11.LocalProtocolError):  # what answers HEAD has no body
            writer.write(wire.send(h11.Data(data=body)) or b"")
        async with asyncio.timeout(LAST_WORDS_S):
            await writer.drain()
            if wire.their_state is not h11.DONE:
                await _linger(reader, writer)

    async def _reply(
        self, wire: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> HttpReply:
        try:
            if len(self._open) > self._limits.connections:
                raise HttpRefused(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
            async with asyncio.timeout(self._limits.seconds):
                request = await self._request(wire, reader, writer)
            return await self._handle(request)
        except HttpRefused as refused:
            return refused.reply
        except TimeoutError:
            return HttpReply(HTTPStatus.REQUEST_TIMEOUT, {"error": "the request took too long"})
        except h11.RemoteProtocolError as error:
            status = HTTPStatus(error.error_status_hint)
            return HttpReply(status, {"error": f"no proper request: {error}"})

    async def _request(
        self, wire: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> HttpRequest:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = wire.next_event()
            match event:
                case h11.NEED_DATA:
                    if head is not None and wire.they_are_waiting_for_100_continue:
                        go_on = h11.InformationalResponse(status_code=100, headers=[])
                        writer.write(wire.send(go_on) or b"")
                    wire.receive_data(await reader.read(READ))
                case h11.Request():
                    head = event
                    self._check_head(head)
                case h11.Data():
                    body += event.data
                    if len(body) > self._limits.body:
                        raise _too_large(self._limits)
                case h11.EndOfMessage():
                    assert head is not None, "h11 gives the head before the end"
                    return HttpRequest(_path(head), _headers(head), bytes(body))
                case _:
                    raise ConnectionResetError("it was closed before the request had come")

    def _check_head(self, head: h11.Request) -> None:
        self._check(head.method.decode("ascii", "replace"), _path(head))
        for name, value in head.headers:
            # h11 has seen to it that there is one at most, and that it is a number.
            if name == b"content-length" and int(value) > self._limits.body:
                raise _too_large(self._limits)


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Let the other side go on for a little: who is still writing when the connection is closed may
    never read the answer."""
    writer.write_eof()
    left = MOST_LINGERING
    while left > 0 and (data := await reader.read(READ)):
        left -= len(data)


def _too_large(limits: InboundLimits) -> HttpRefused:
    why = f"a body has at most {limits.body} bytes"
    return HttpRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)


def _path(head: h11.Request) -> str:
    return head.target.decode("ascii", "replace").partition("?")[0]


def _headers(head: h11.Request) -> Mapping[str, str]:
    """Raises `HttpRefused` for a header of webhooks that is there twice: which one is meant?"""
    made: dict[str, str] = {}
    for raw, value in head.headers:
        name = raw.decode("ascii", "replace")
        if name in made and name.startswith("webhook-"):
            raise HttpRefused(HTTPStatus.BAD_REQUEST, f"the header {name} is there twice")
        made[name] = value.decode("latin-1")
    return made


@asynccontextmanager
async def listening(
    host: str, port: int, limits: InboundLimits, check: Check, handle: Handle
) -> AsyncIterator[int]:
    """Serve inside of the block; gives the port. Raises `OSError` if nothing can listen there."""
    door = _Door(limits, check, handle)
    server = await asyncio.start_server(door.enter, host, port)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await door.leave()
