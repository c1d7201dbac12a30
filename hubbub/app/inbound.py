"""Webhooks that come in: a process of its own, so that the hub itself takes no requests.

A small HTTP server: h11 on asyncio's streams, one request on each connection, which must have come
as a whole within its time and size. What is not a proper request is answered with the status that
says so, and nothing else happens. Any other is checked, made into a text, and posted in its thread,
once.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import h11
from pydantic import JsonValue

from hubbub.app.preflight import load_valid
from hubbub.app.process import run_loop
from hubbub.client import Client, ClientOptions, WebSocketTransport
from hubbub.client.runfile import find_network
from hubbub.client.transport import Transport
from hubbub.clock import Clock, SystemClock
from hubbub.config.units import Address, parse_address
from hubbub.errors import ConnectionLost, OperationError, UserError
from hubbub.logs import get_logger
from hubbub.mods.loader import load_mods
from hubbub.mods.webhooks.mod import WebhooksMod
from hubbub.mods.webhooks.settings import (
    CannotRender,
    EndpointConfig,
    Forged,
    InboundConfig,
    rendered,
    verify,
)
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import SendResult

__all__ = ["InboundJob", "inbound", "job_of", "run"]


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


log = get_logger(__name__)

PATH = "/hooks/"
POST_S = 15.0
"""Seconds in which the hub must have taken a message; else the sender is told to come again."""
_THEIRS = {ErrorCode.REJECTED, ErrorCode.TOO_LARGE, ErrorCode.BAD_REQUEST}
"""What the hub may have against a text that somebody else has written."""


class _Service:
    """Answers requests, as one participant of the network."""

    def __init__(self, config: InboundConfig, client: Client, clock: Clock):
        self._client, self._clock = client, clock
        self._endpoints = {f"{PATH}{each.name}": each for each in config.endpoints}

    async def enter(self) -> None:
        """Join the channels that are posted to. Raises `OperationError`."""
        tops = {thread_ids.root(each.to) for each in self._endpoints.values()}
        for top in sorted(tops):
            if thread_ids.kind_of(top) == "channel":
                await self._client.call("join_channel", channel=top.partition(".")[2])

    async def acknowledge(self) -> None:
        """What is said in the threads is not looked at; the hub need not keep it for later."""
        async for item in self._client.events():
            if isinstance(item, Event):
                await self._client.ack(item.seq)

    def check(self, method: str, path: str) -> None:
        if path not in self._endpoints:
            raise HttpRefused(HTTPStatus.NOT_FOUND, "there is no such webhook")
        if method != "POST":
            raise HttpRefused(
                HTTPStatus.METHOD_NOT_ALLOWED, "only POST is taken here", allow="POST"
            )

    async def handle(self, request: HttpRequest) -> HttpReply:
        """Raises `HttpRefused`."""
        endpoint = self._endpoints[request.path]
        secret, now = endpoint.secret.get_secret_value(), self._clock.now()
        try:
            id = verify(secret, request.headers, request.body, now, endpoint.tolerance)
        except Forged as forged:
            log.warning("a webhook is refused", endpoint=endpoint.name, why=str(forged))
            raise HttpRefused(HTTPStatus.UNAUTHORIZED, str(forged)) from None
        text = _text(endpoint, id, request.body)
        if not text:
            return HttpReply(HTTPStatus.OK, {"posted": False})
        sent = await self._post(endpoint, id, text)
        value: dict[str, JsonValue] = {"posted": True, "message_id": sent.id}
        return HttpReply(HTTPStatus.OK, value)

    async def _post(self, endpoint: EndpointConfig, id: str, text: str) -> SendResult:
        """The message; the same one each time an event comes. Raises `HttpRefused`."""
        once = hashlib.sha256(f"{endpoint.name}\0{id}".encode()).hexdigest()[:40]
        try:
            async with asyncio.timeout(POST_S):
                answer = await self._client.call(
                    "send_text_message",
                    cid=f"webhook:{once}",
                    to=endpoint.to,
                    text=text,
                    mentions=list(endpoint.mentions),
                    outside=True,
                )
        except OperationError as error:
            raise _refused(endpoint, error) from error
        except (TimeoutError, ConnectionLost):
            again = {"retry-after": "10"}
            why = "the network cannot be reached at the moment"
            raise HttpRefused(HTTPStatus.SERVICE_UNAVAILABLE, why, **again) from None
        return SendResult.model_validate(answer)


def _refused(endpoint: EndpointConfig, error: OperationError) -> HttpRefused:
    log.warning("a webhook is not posted", endpoint=endpoint.name, why=str(error))
    if error.code == ErrorCode.CID_CONFLICT:
        why = "another event with this id has been posted"
        return HttpRefused(HTTPStatus.CONFLICT, why)
    if error.temporary:
        wait = str(int(error.retry_after_s or 0) + 1)
        return HttpRefused(HTTPStatus.SERVICE_UNAVAILABLE, error.message, **{"retry-after": wait})
    theirs = error.code in _THEIRS
    status = HTTPStatus.UNPROCESSABLE_ENTITY if theirs else HTTPStatus.INTERNAL_SERVER_ERROR
    return HttpRefused(status, f"{error.code}: {error.message}")


def _text(endpoint: EndpointConfig, id: str, body: bytes) -> str:
    """Raises `HttpRefused`."""
    try:
        value: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        raise HttpRefused(HTTPStatus.BAD_REQUEST, "the body is no JSON") from None
    given: dict[str, JsonValue] = {"body": value, "id": id, "name": endpoint.name}
    try:
        return rendered(endpoint.template, given)
    except CannotRender as error:
        log.warning("a webhook's template fails", endpoint=endpoint.name, why=str(error))
        why = "the template of this webhook fails on it"
        raise HttpRefused(HTTPStatus.UNPROCESSABLE_ENTITY, why) from error


@asynccontextmanager
async def inbound(
    config: InboundConfig,
    transport: Transport,
    token: str | None = None,
    *,
    host: str,
    port: int,
    clock: Clock | None = None,
) -> AsyncIterator[int]:
    """Take webhooks inside of the block; gives the port.

    Raises what `Client` raises, `OperationError` if a channel cannot be joined, and `OSError` if
    nothing can listen there.
    """
    options = ClientOptions(schemas=False)
    async with Client(
        transport, config.sender, "service", token=token, cursor="latest", options=options
    ) as client:
        service = _Service(config, client, clock or SystemClock())
        await service.enter()
        limits = InboundLimits(config.max_size, config.timeout, config.max_connections)
        reading = asyncio.create_task(service.acknowledge())
        try:
            async with listening(host, port, limits, service.check, service.handle) as bound:
                yield bound
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


# The process --------------------------------------------------------------------------------------


Announce = Callable[[Sequence[str]], None]
"""Is told the addresses of all endpoints when they can be reached."""


@dataclass(frozen=True)
class InboundJob:
    """Where to listen, and which network to join."""

    config: InboundConfig
    listen: Address
    url: str
    token: str | None


def job_of(path: Path, address: str | None, token: str | None) -> InboundJob:
    """What the network's YAML says of webhooks that come in. Raises `UserError`."""
    file = load_valid(path).file
    mods = load_mods(file.mods, file.network.allow_mods)
    found = [mod for mod in mods if isinstance(mod, WebhooksMod)]
    if not found or not found[0].config.inbound.endpoints:
        raise UserError(f"{path}: no webhooks come in: mods.webhooks.inbound.endpoints has none")
    config = found[0].config.inbound
    place = find_network(address or file.network.name)
    own = token or place.tokens.get(config.sender)
    return InboundJob(config, parse_address(config.listen), place.url, own)


def run(job: InboundJob, announce: Announce) -> None:
    """Take webhooks until SIGINT or SIGTERM. Raises `HubbubError`."""
    run_loop(_until_signal(job, announce))


async def _until_signal(job: InboundJob, announce: Announce) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with contextlib.AsyncExitStack() as stack:
        try:
            port = await stack.enter_async_context(
                inbound(
                    job.config,
                    WebSocketTransport(job.url),
                    job.token,
                    host=job.listen.host,
                    port=job.listen.port,
                )
            )
        except OSError as error:
            raise UserError(f"nothing can listen at {job.listen}: {error.strerror}") from error
        except ConnectionLost as error:
            raise UserError(
                f"no network answers at {job.url}; start one with `hubbub up`, or name another "
                "with --address"
            ) from error
        bound = Address(job.listen.host, port)
        announce([f"http://{bound}{PATH}{each.name}" for each in job.config.endpoints])
        await stop.wait()
