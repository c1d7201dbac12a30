"""HTTP/1.1 for what the hub takes beside its own protocol: a request, answered whole or in pieces.

llhttp reads (`httptools`). A connection that was answered may carry the next request, if its owner
says so (`again`); what is sent before the answer is there (pipelining) is not read, and the
connection ends with that answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import cast

import httptools

from hubbub.network.http import foreign

__all__ = ["BadRequest", "Exchange", "HttpServer"]

HEAD_S, REQUEST_S = 10.0, 60.0
"""Seconds in which the head, and then the body of a request must have come."""
MOST_HEAD = 64 * 1024
"""Bytes of a head."""
MOST_AHEAD = 256 * 1024
"""Bytes of a body that are read before somebody wants it."""
STALLED_S = 10.0
"""Seconds in which the peer must take what is written; then the connection is closed."""
LINGER_S, MOST_LINGERING = 2.0, 16 * 1024 * 1024
"""Seconds and bytes for which a peer may go on writing after its answer: one whose connection is
closed meanwhile may never read that."""
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class BadRequest(Exception):
    """This is no request that can be taken."""

    def __init__(self, status: int, why: str):
        self.status = status
        super().__init__(why)


class Exchange(asyncio.Protocol):
    """One request on a connection, and its answer.

    method, path, query, address    of the request; the query is what stands after `?`
    headers                         by their names in lower case; of several of one name, one after
                                    the other with commas between them

    The task that answers is cancelled when the peer leaves.
    """

    method, path, query = "", "", ""

    def __init__(self, server: HttpServer, again: Callable[[], None] | None):
        self._server, self._again = server, again
        self._parser = httptools.HttpRequestParser(self)
        self._url, self._size = b"", 0
        self.headers, self._several = dict[str, str](), set[str]()
        self._head = self._complete = self._keep = self._begun = self._chunked = False
        self._body = bytearray()
        self._wrong: BadRequest | None = None
        self._task: asyncio.Task[None] | None = None
        self._news: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._lingering = self._left = False

    # Reading: what asyncio and the parser call ----------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        self._timer: asyncio.TimerHandle | None = None
        if self._again is None:  # else the first bytes are there, and are read next
            self._wait(self._server.head_s)
        if not self._server.enter(self):
            self._fail(503, "too many connections")

    def data_received(self, data: bytes) -> None:
        if self._lingering:
            self._size += len(data)
            if self._size > MOST_LINGERING:
                self._transport.abort()
            return
        if self._complete or self._wrong is not None:
            self._again = None
            return
        before = self._head
        self._size += len(data)
        self._feed(data)
        if self._complete or self._wrong is not None or before:
            return
        if self._head:
            self._wait(self._server.request_s)
        elif self._size > MOST_HEAD:
            self._fail(431, f"a head has at most {MOST_HEAD} bytes")
        elif self._timer is None:
            self._wait(self._server.head_s)

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._again = None  # it stays with this protocol; the parser reads no body then
            if self.headers.keys() & {"content-length", "transfer-encoding"}:
                self._fail(400, "no proper request: it wants another protocol")
        except httptools.HttpParserError as error:
            self._again = None
            if not self._complete:
                self._fail(400, f"no proper request: {error}")

    def on_message_begin(self) -> None:
        if self._complete:
            raise BadRequest(400, "the next request is there before the answer")

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head:
            return  # behind the body: no header of the request
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
        if key in self.headers:
            self._several.add(key)
            text = f"{self.headers[key]}, {text}"
        self.headers[key] = text

    def on_headers_complete(self) -> None:
        self._head = True
        self.method = self._parser.get_method().decode("ascii")
        self.path, _, self.query = self._url.decode("latin-1").partition("?")
        self._start()

    def on_body(self, body: bytes) -> None:
        self._body += body
        if self._news is not None:
            self._tell()
        elif len(self._body) > MOST_AHEAD:
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        self._complete, self._keep = True, self._parser.should_keep_alive()
        self._wait_no_more()
        self._tell()

    def eof_received(self) -> None:
        self._leave()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.leave(self)
        self._leave()

    def _leave(self) -> None:
        """The peer has gone, or says nothing more."""
        self._again = None
        self._wait_no_more()
        if self._task is not None and not self._left:
            self._task.cancel()  # once: what it does then shall not be cancelled, too
        self._left = True

    def _wait(self, seconds: float) -> None:
        """More of the request must come within so many."""
        self._wait_no_more()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._late)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _late(self) -> None:
        self._fail(408, "the request took too long")

    def _fail(self, status: int, why: str) -> None:
        if self._wrong is None:
            self._wrong = BadRequest(status, why)
            self._start()
            self._tell()

    def _start(self) -> None:
        if self._task is None:
            self._task = self._server.start(self)

    def _tell(self) -> None:
        news, self._news = self._news, None
        if news is not None and not news.done():
            news.set_result(None)

    def _read_on(self) -> None:
        if not self._transport.is_reading():
            self._transport.resume_reading()

    def check(self) -> None:
        """Raises `BadRequest` if what has come so far is no request."""
        if self._wrong is not None:
            raise self._wrong

    def foreign(self, host: str, names: Sequence[str]) -> str | None:
        """Why it must not be served by who listens on `host`, whose other names are `names`."""
        there = self.headers.get("host", ""), self.headers.get("origin")
        return foreign(*there, host, names)

    def header(self, name: str) -> str:
        """One that may come once; empty if it did not. Raises `BadRequest`."""
        if name in self._several:
            raise BadRequest(400, f"the header {name} is there twice")
        return self.headers.get(name, "")

    async def body(self, most: int) -> bytes:
        """What was sent along, at most so many bytes. Raises `BadRequest`."""
        self.check()
        expected = self.headers.get("content-length", "0")
        if not self._complete and "100-continue" in self.headers.get("expect", "").lower():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(self._body) <= most and int(expected) <= most:
            if self._complete:
                return bytes(self._body)
            self._news = asyncio.get_running_loop().create_future()
            self._read_on()
            await self._news
            self.check()
        raise BadRequest(413, f"a body has at most {most} bytes")

    # Writing --------------------------------------------------------------------------------------

    async def whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Answer at once. Raises `ConnectionError` when it is not taken."""
        lengths = {"content-length": str(len(body))} if status != HTTPStatus.NO_CONTENT else {}
        head = self._encoded(status, {**headers, **lengths})
        await self._write(head if self.method == "HEAD" else head + body)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin an answer whose body is written piece by piece."""
        self._chunked = self.method != "HEAD" and self._parser.get_http_version() != "1.0"
        more = {"transfer-encoding": "chunked"} if self._chunked else {}
        self._transport.write(self._encoded(status, {**headers, **more}))

    async def write(self, piece: bytes) -> None:
        """A piece of it. Raises `ConnectionError` when it is not taken."""
        if piece and self.method != "HEAD":
            await self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)

    @property
    def begun(self) -> bool:
        """Whether some of the answer is on its way."""
        return self._begun

    def _encoded(self, status: int, headers: Mapping[str, str]) -> bytes:
        self._begun = True
        lasting = self._complete and self._keep and self._wrong is None
        if not lasting or (not self._chunked and "content-length" not in headers):
            self._again = None
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, '')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append("connection: close" if self._again is None else "connection: keep-alive")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def _write(self, data: bytes) -> None:
        if self._transport.is_closing():
            raise ConnectionResetError("the peer has gone")
        self._transport.write(data)
        if self._writable is not None:
            try:
                async with asyncio.timeout(STALLED_S):
                    await self._writable
            except TimeoutError:
                self._transport.abort()
                raise ConnectionAbortedError("nobody reads the answer") from None

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def close(self) -> None:
        """End the connection, with what is written."""
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once, as if it had broken."""
        self._transport.abort()

    def hand_over(self, following: asyncio.Protocol) -> None:
        """Another protocol speaks on the connection from here on."""
        self._transport.set_protocol(following)
        following.connection_made(self._transport)

    def finish(self) -> None:
        """The answer is complete, if it was begun: the connection is free, or ends."""
        self._task = None
        self._wait_no_more()
        if self._transport.is_closing():
            return
        if self._chunked:
            self._transport.write(b"0\r\n\r\n")
        self._read_on()
        if self._begun and self._again is not None:
            self._server.leave(self)
            self._again()
        elif self._complete or not self._begun:
            self._transport.close()
        else:
            self._lingering, self._size = True, 0
            self._transport.write_eof()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(LINGER_S, self._transport.abort)


class HttpServer:
    """Answers requests on connections that others accept."""

    def __init__(
        self,
        handle: Callable[[Exchange], Awaitable[None]],
        *,
        request_s: float = REQUEST_S,
        most: int | None = None,
    ):
        """`handle` answers each; a request must have come within `request_s` seconds. At most
        `most` are answered at once, the rest refused; None: others count connections."""
        self._handle, self._most = handle, most
        self.head_s, self.request_s = min(HEAD_S, request_s), request_s
        self._open = set[Exchange]()
        self._tasks = set[asyncio.Task[None]]()

    def protocol(self, again: Callable[[], None] | None = None) -> asyncio.Protocol:
        """Speaks HTTP on one connection, for one request; `again` is called when another one may
        come on it. Without it the connection ends.
        """
        return Exchange(self, again)

    def connection(self) -> asyncio.Protocol:
        """Speaks HTTP on one connection, for one request after the other."""
        exchange = Exchange(self, lambda: exchange.hand_over(self.connection()))
        return exchange

    def start(self, exchange: Exchange) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._serve(exchange))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def enter(self, exchange: Exchange) -> bool:
        """One more; whether it is welcome."""
        self._open.add(exchange)
        return self._most is None or len(self._open) <= self._most

    def leave(self, exchange: Exchange) -> None:
        self._open.discard(exchange)

    async def close(self) -> None:
        """End what is under way."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for exchange in self._open:
            exchange.close()

    async def _serve(self, exchange: Exchange) -> None:
        try:
            with suppress(OSError):  # who has asked has gone
                await self._handle(exchange)
        finally:
            exchange.finish()
