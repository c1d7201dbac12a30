"""Inbound webhooks, in a separate process so that the hub itself handles no requests.

Each connection carries one request, limited in time and size. An invalid request gets an error
status. A valid one is verified, rendered as text, and posted in its thread exactly once.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from pydantic import JsonValue

from hubbub.app.preflight import load_valid
from hubbub.app.process import run_loop
from hubbub.app.running import until_signal
from hubbub.client import Client, ClientOptions, ConnectionLog, WebSocketTransport
from hubbub.client.runfile import find_network
from hubbub.client.transport import Transport
from hubbub.clock import Clock, SystemClock
from hubbub.config.units import ListenAddress, parse_address
from hubbub.errors import ConnectionLost, OperationError, UserError
from hubbub.interop.http import BadRequest, Exchange, HttpServer
from hubbub.logs import get_logger
from hubbub.mods.loader import load_mods
from hubbub.mods.webhooks.mod import WebhooksMod
from hubbub.mods.webhooks.settings import (
    ID,
    SIGNATURE,
    TIMESTAMP,
    BadSignature,
    CannotRender,
    EndpointConfig,
    InboundConfig,
    render,
    verify,
)
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import SendResult

__all__ = ["inbound", "job_of", "run"]


class HttpRefused(Exception):
    """The request is refused."""

    def __init__(self, status: HTTPStatus, why: str, **headers: str):
        self.status, self.headers = status, headers
        super().__init__(why)


log = get_logger(__name__)

PATH = "/hooks/"
POST_S = 15.0
"""Seconds for the hub to accept a message; after that the sender is asked to retry."""
_SENDER_FAULTS = {ErrorCode.REJECTED, ErrorCode.TOO_LARGE, ErrorCode.BAD_REQUEST}
"""Refusals by the hub that are the fault of the webhook's sender."""


class _Service:
    """Answers requests, as one participant of the network."""

    def __init__(self, config: InboundConfig, client: Client, clock: Clock):
        self._client, self._clock, self._most = client, clock, config.max_size
        self._endpoints = {f"{PATH}{each.name}": each for each in config.endpoints}

    async def enter(self) -> None:
        """Join the channels of the endpoints. Raises `OperationError`."""
        tops = {thread_ids.root(each.to) for each in self._endpoints.values()}
        for top in sorted(tops):
            if thread_ids.kind_of(top) == "channel":
                await self._client.call("join_channel", channel=top.partition(".")[2])

    async def acknowledge(self) -> None:
        """Acknowledge events without reading them, so that the hub need not buffer them."""
        connection = ConnectionLog(self._client.participant)
        async for item in self._client.events():
            connection.note(item)
            if isinstance(item, Event):
                await self._client.ack(item.seq)

    async def answer(self, exchange: Exchange) -> None:
        """Handle one webhook."""
        headers: Mapping[str, str] = {}
        try:
            exchange.check()
            value = await self._take(exchange)
            status = HTTPStatus.OK
        except BadRequest as invalid:
            status, value = HTTPStatus(invalid.status), {"error": str(invalid)}
        except HttpRefused as refused:
            status, value, headers = refused.status, {"error": str(refused)}, refused.headers
        body = json.dumps(value, ensure_ascii=False).encode()
        headers = {"content-type": "application/json", **headers}
        await exchange.respond(status, headers, body)

    async def _take(self, exchange: Exchange) -> dict[str, JsonValue]:
        """The response. Raises `HttpRefused` and `BadRequest`."""
        endpoint = self._endpoints.get(exchange.path)
        if endpoint is None:
            raise HttpRefused(HTTPStatus.NOT_FOUND, "there is no such webhook")
        if exchange.method != "POST":
            raise HttpRefused(HTTPStatus.METHOD_NOT_ALLOWED, "only POST is allowed", allow="POST")
        body = await exchange.body(self._most)
        headers = {name: exchange.header(name) for name in (ID, TIMESTAMP, SIGNATURE)}
        secret, now = endpoint.secret.get_secret_value(), self._clock.now()
        try:
            id = verify(secret, headers, body, now, endpoint.tolerance)
        except BadSignature as forged:
            log.warning("webhook refused", endpoint=endpoint.name, why=str(forged))
            raise HttpRefused(HTTPStatus.UNAUTHORIZED, str(forged)) from None
        text = _text(endpoint, id, body)
        if not text:
            return {"posted": False}
        sent = await self._post(endpoint, id, text)
        return {"posted": True, "message_id": sent.id}

    async def _post(self, endpoint: EndpointConfig, id: str, text: str) -> SendResult:
        """Post the message, once per event id. Raises `HttpRefused`."""
        once = hashlib.sha256(f"{endpoint.name}\0{id}".encode()).hexdigest()[:40]
        try:
            async with asyncio.timeout(POST_S):
                answer = await self._client.call(
                    "send_text_message",
                    cid=f"webhook:{once}",
                    to=endpoint.to,
                    text=text,
                    mentions=list(endpoint.mentions),
                    untrusted=True,
                )
        except OperationError as error:
            raise _refused(endpoint, error) from error
        except (TimeoutError, ConnectionLost):
            again = {"retry-after": "10"}
            why = "the network is unreachable at the moment"
            raise HttpRefused(HTTPStatus.SERVICE_UNAVAILABLE, why, **again) from None
        return SendResult.model_validate(answer)


def _refused(endpoint: EndpointConfig, error: OperationError) -> HttpRefused:
    log.warning("webhook not posted", endpoint=endpoint.name, why=str(error))
    if error.code == ErrorCode.CID_CONFLICT:
        why = "another event with this id was already posted"
        return HttpRefused(HTTPStatus.CONFLICT, why)
    if error.temporary:
        wait = str(int(error.retry_after_s or 0) + 1)
        return HttpRefused(HTTPStatus.SERVICE_UNAVAILABLE, error.message, **{"retry-after": wait})
    is_sender_fault = error.code in _SENDER_FAULTS
    status = (
        HTTPStatus.UNPROCESSABLE_ENTITY if is_sender_fault else HTTPStatus.INTERNAL_SERVER_ERROR
    )
    return HttpRefused(status, f"{error.code}: {error.message}")


def _text(endpoint: EndpointConfig, id: str, body: bytes) -> str:
    """The text to post. Raises `HttpRefused`."""
    try:
        value: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        raise HttpRefused(HTTPStatus.BAD_REQUEST, "the body is not JSON") from None
    given: dict[str, JsonValue] = {"body": value, "id": id, "name": endpoint.name}
    try:
        return render(endpoint.template, given)
    except CannotRender as error:
        log.warning("webhook template failed", endpoint=endpoint.name, why=str(error))
        why = f"this webhook's template failed on the event: {error}"
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
    """Receive webhooks inside this context; yields the port.

    Raises what `Client` raises, `OperationError` if a channel cannot be joined, and `OSError` if
    the address cannot be listened on.
    """
    options = ClientOptions(schemas=False)
    async with Client(
        transport, config.sender, "service", token=token, cursor="latest", options=options
    ) as client:
        service = _Service(config, client, clock or SystemClock())
        await service.enter()
        http = HttpServer(service.answer, request_s=config.timeout, most=config.max_connections)
        reading = asyncio.create_task(service.acknowledge())
        try:
            server = await asyncio.get_running_loop().create_server(http.protocol, host, port)
            try:
                yield int(server.sockets[0].getsockname()[1])
            finally:
                server.close()
                await http.close()
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


# The process --------------------------------------------------------------------------------------


Announce = Callable[[Sequence[str]], None]
"""Called with the addresses of all endpoints once they are reachable."""


@dataclass(frozen=True)
class InboundJob:
    """The address to listen on, and the network to join."""

    config: InboundConfig
    listen: ListenAddress
    url: str
    token: str | None


def job_of(path: Path, address: str | None, token: str | None) -> InboundJob:
    """The configuration of inbound webhooks in the network's YAML. Raises `UserError`."""
    file = load_valid(path).file
    mods = load_mods(file.mods, file.network.allow_mods)
    webhooks = [mod for mod in mods if isinstance(mod, WebhooksMod)]
    if not webhooks or not webhooks[0].config.inbound.endpoints:
        raise UserError(f"{path}: no webhooks are configured in mods.webhooks.inbound.endpoints")
    config = webhooks[0].config.inbound
    place = find_network(address or file.network.name)
    own = token or place.tokens.get(config.sender)
    return InboundJob(config, parse_address(config.listen), place.url, own)


def run(job: InboundJob, announce: Announce) -> None:
    """Receive webhooks until SIGINT or SIGTERM. Raises `HubbubError`."""
    run_loop(until_signal(_serve(job, announce)))


async def _serve(job: InboundJob, announce: Announce) -> None:
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
            raise UserError(f"cannot listen on {job.listen}: {error.strerror}") from error
        except ConnectionLost as error:
            raise UserError(
                f"no network answers at {job.url}; start one with `hubbub up`, or name another "
                "with --address"
            ) from error
        bound = ListenAddress(job.listen.host, port)
        announce([f"http://{bound}{PATH}{each.name}" for each in job.config.endpoints])
        await asyncio.Event().wait()
