"""An HTTP/1.1 server for the hub's other protocols: a response is sent whole or streamed.

llhttp (`httptools`) does the parsing. With a `reuse` callback, a connection can carry another
request after the response. Pipelined bytes are not read, and close the connection after the
response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import cast

import httptools

from hubbub.network.http import foreign
from hubbub.strict_json import outside_texts
from hubbub.waiting import cancel

__all__ = ["BadRequest", "Exchange", "HttpServer"]

HEAD_S, REQUEST_S = 10.0, 60.0
"""Seconds until the head, and then the body, of a request must be complete."""
MAX_HEAD = 64 * 1024
"""Bytes of a head."""
MAX_READ_AHEAD = 256 * 1024
"""Bytes of a body that are read before the handler asks for it."""
STALLED_S = 10.0
"""Seconds the peer has to read a full write buffer; then the connection is aborted."""
LINGER_S, MAX_LINGERING = 2.0, 16 * 1024 * 1024
"""Seconds and bytes for which a peer can keep sending after its response: closing earlier could
reset the connection before the peer reads it."""
_BODILESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_SEPARATORS = (b",", b"[", b"{")
_REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
"""Statuses after which the connection is closed: it has not shown that it is anyone's."""
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class BadRequest(Exception):
    """The request is malformed or exceeds a limit."""

    def __init__(self, status: int, why: str):
        self.status = status
        super().__init__(why)


class Exchange(asyncio.Protocol):
    """One request on a connection, and its response.

    method, path, query, address    of the request; `query` is the part after `?`
    headers                         by lower-case name; repeated headers are joined with commas

    The handler's task is cancelled when the peer disconnects.
    """

    method, path, query = "", "", ""

    def __init__(self, server: HttpServer, reuse: Callable[[], None] | None):
        self._server, self._reuse = server, reuse
        self._parser = httptools.HttpRequestParser(self)
        self._url, self._size = b"", 0
        self.headers, self._repeated = dict[str, str](), set[str]()
        self._head = self._complete = self._keep_alive = self._started = self._chunked = False
        self._body = bytearray()
        self._error: BadRequest | None = None
        self._task: asyncio.Task[None] | None = None
        self._body_arrived: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._lingering = self._disconnected = False

    # Reading: called by asyncio and the parser ----------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport is not a subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        self._timer: asyncio.TimerHandle | None = None
        if self._reuse is None:  # otherwise the first bytes are already there
            self._set_deadline(self._server.head_s)
        if not self._server.enter(self):
            self._fail(503, "too many connections")

    def data_received(self, data: bytes) -> None:
        if self._lingering:
            self._size += len(data)
            if self._size > MAX_LINGERING:
                self._transport.abort()
            return
        if self._complete or self._error is not None:
            self._reuse = None
            return
        before = self._head
        self._size += len(data)
        self._feed(data)
        if self._complete or self._error is not None or before:
            return
        if self._head:
            self._set_deadline(self._server.request_s)
        elif self._size > MAX_HEAD:
            self._fail(431, f"a head has at most {MAX_HEAD} bytes")
        elif self._timer is None:
            self._set_deadline(self._server.head_s)

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._reuse = None  # no upgrade is offered, and the parser skips the body
            if self.headers.keys() & {"content-length", "transfer-encoding"}:
                self._fail(400, "malformed request: it asks for a protocol upgrade")
        except httptools.HttpParserError as error:
            self._reuse = None
            if not self._complete:
                self._fail(400, f"malformed request: {error}")

    def on_message_begin(self) -> None:
        if self._complete:
            raise BadRequest(400, "pipelining is not supported")

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head:
            return  # a trailer, not a header
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
        if key in self.headers:
            self._repeated.add(key)
            text = f"{self.headers[key]}, {text}"
        self.headers[key] = text

    def on_headers_complete(self) -> None:
        self._head = True
        self.method = self._parser.get_method().decode("ascii")
        self.path, _, self.query = self._url.decode("latin-1").partition("?")
        self._start_handler()

    def on_body(self, body: bytes) -> None:
        self._body += body
        if self._body_arrived is not None:
            self._notify_reader()
        elif len(self._body) > MAX_READ_AHEAD:
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        self._complete, self._keep_alive = True, self._parser.should_keep_alive()
        self._clear_deadline()
        self._notify_reader()

    def eof_received(self) -> None:
        self._on_disconnect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.leave(self)
        self._on_disconnect()

    def _on_disconnect(self) -> None:
        self._reuse = None
        self._clear_deadline()
        if self._task is not None and not self._disconnected:
            self._task.cancel()  # only once, so that its cleanup is not cancelled
        self._disconnected = True

    def _set_deadline(self, seconds: float) -> None:
        self._clear_deadline()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._on_deadline)

    def _clear_deadline(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _on_deadline(self) -> None:
        self._fail(408, "the request took too long")

    def _fail(self, status: int, why: str) -> None:
        if self._error is None:
            self._error = BadRequest(status, why)
            self._start_handler()
            self._notify_reader()

    def _start_handler(self) -> None:
        if self._task is None:
            self._task = self._server.start(self)

    def _notify_reader(self) -> None:
        arrived, self._body_arrived = self._body_arrived, None
        if arrived is not None and not arrived.done():
            arrived.set_result(None)

    def _resume_reading(self) -> None:
        if not self._transport.is_reading():
            self._transport.resume_reading()

    def check(self) -> None:
        """Raises `BadRequest` if the bytes received so far are not a valid request."""
        if self._error is not None:
            raise self._error

    def foreign(self, host: str, names: Sequence[str]) -> str | None:
        """Why a server on `host`, also reachable as `names`, must refuse the request; None: it
        need not."""
        return foreign(self.headers.get("host", ""), self.headers.get("origin"), host, names)

    def header(self, name: str) -> str:
        """A header that cannot be repeated; empty if absent. Raises `BadRequest`."""
        if name in self._repeated:
            raise BadRequest(400, f"the header {name} is repeated")
        return self.headers.get(name, "")

    async def json(self, most: int, most_values: int) -> bytes:
        """A JSON body of at most `most` bytes and `most_values` values, to be parsed. That can take
        50 us for each value, during which the hub does nothing else. Raises `BadRequest`."""
        body = await self.body(most)
        if _has_more_values(body, most_values):
            raise BadRequest(413, f"a body has at most {most_values} values in all")
        return body

    async def body(self, most: int) -> bytes:
        """The body, of at most `most` bytes. Raises `BadRequest`."""
        self.check()
        expected = self.headers.get("content-length", "0")
        if not self._complete and "100-continue" in self.headers.get("expect", "").lower():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(self._body) <= most and int(expected) <= most:
            if self._complete:
                return bytes(self._body)
            self._body_arrived = asyncio.get_running_loop().create_future()
            self._resume_reading()
            await self._body_arrived
            self.check()
        raise BadRequest(413, f"a body has at most {most} bytes")

    # Writing --------------------------------------------------------------------------------------

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole response. Raises `ConnectionError` if the peer does not read it."""
        length = {} if status in _BODILESS else {"content-length": str(len(body))}
        head = self._encode_head(status, {**headers, **length})
        await self._write(head if self.method == "HEAD" else head + body)

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Start a response whose body is streamed with `write`."""
        self._chunked = self.method != "HEAD" and self._parser.get_http_version() != "1.0"
        encoding = {"transfer-encoding": "chunked"} if self._chunked else {}
        self._transport.write(self._encode_head(status, {**headers, **encoding}))

    async def write(self, chunk: bytes) -> None:
        """Send a chunk of the body. Raises `ConnectionError` if the peer does not read it."""
        if chunk and self.method != "HEAD":
            await self._write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if self._chunked else chunk)

    @property
    def has_started(self) -> bool:
        """Whether part of the response was sent."""
        return self._started

    def _encode_head(self, status: int, headers: Mapping[str, str]) -> bytes:
        self._started = True
        keep_alive = self._complete and self._keep_alive and self._error is None
        keep_alive = keep_alive and status not in _REFUSALS
        is_delimited = self._chunked or status in _BODILESS or "content-length" in headers
        if not (keep_alive and is_delimited):
            self._reuse = None
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, '')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append("connection: close" if self._reuse is None else "connection: keep-alive")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def _write(self, data: bytes) -> None:
        if self._transport.is_closing():
            raise ConnectionResetError("the peer disconnected")
        self._transport.write(data)
        if self._writable is not None:
            try:
                async with asyncio.timeout(STALLED_S):
                    await self._writable
            except TimeoutError:
                self._transport.abort()
                raise ConnectionAbortedError("the peer does not read the response") from None

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def close(self) -> None:
        """Close the connection after the buffered writes."""
        self._transport.close()

    def abort(self) -> None:
        """Drop the connection at once, buffered writes included."""
        self._transport.abort()

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Give the connection to another protocol."""
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)

    def finish(self) -> None:
        """Complete the response, if one was started, and reuse or close the connection."""
        self._task = None
        self._clear_deadline()
        if self._transport.is_closing():
            return
        if self._chunked:
            self._transport.write(b"0\r\n\r\n")
        self._resume_reading()
        if self._started and self._reuse is not None:
            self._server.leave(self)
            self._reuse()
        elif self._complete or not self._started:
            self._transport.close()
        else:
            self._lingering, self._size = True, 0
            self._transport.write_eof()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(LINGER_S, self._transport.abort)


def _has_more_values(body: bytes, most: int) -> bool:
    """Whether a JSON text has more values than that: each follows a comma or a bracket."""
    if sum(map(body.count, _SEPARATORS)) <= most:
        return False  # even if none of them is part of a text
    if body.count(b'"') - body.count(b'\\"') > 4 * most:  # a name and a text for each
        return True
    bare = outside_texts(body)
    return sum(map(bare.count, _SEPARATORS)) > most


class HttpServer:
    """Serves requests on connections accepted elsewhere."""

    def __init__(
        self,
        handle: Callable[[Exchange], Awaitable[None]],
        *,
        request_s: float = REQUEST_S,
        most: int | None = None,
    ):
        """`handle` answers each request, which must arrive within `request_s` seconds. At most
        `most` connections are open at once, the rest refused; None: no limit here."""
        self._handle, self._most = handle, most
        self.head_s, self.request_s = min(HEAD_S, request_s), request_s
        self._open = set[Exchange]()
        self._tasks = set[asyncio.Task[None]]()

    def protocol(self, reuse: Callable[[], None] | None = None) -> asyncio.Protocol:
        """A protocol for one request. `reuse` is called when the connection can carry another;
        without it the connection is closed.
        """
        return Exchange(self, reuse)

    def connection(self) -> asyncio.Protocol:
        """A protocol for successive requests on one connection."""
        exchange = Exchange(self, lambda: exchange.hand_over(self.connection()))
        return exchange

    def start(self, exchange: Exchange) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._serve(exchange))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def enter(self, exchange: Exchange) -> bool:
        """Add a connection; false if there are too many."""
        self._open.add(exchange)
        return self._most is None or len(self._open) <= self._most

    def leave(self, exchange: Exchange) -> None:
        self._open.discard(exchange)

    async def close(self) -> None:
        """Cancel all requests and close their connections."""
        await cancel(*self._tasks)
        for exchange in self._open:
            exchange.close()

    async def _serve(self, exchange: Exchange) -> None:
        try:
            with suppress(OSError):  # the peer disconnected
                await self._handle(exchange)
        finally:
            exchange.finish()
