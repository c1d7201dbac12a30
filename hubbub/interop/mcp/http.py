"""MCP over HTTP on the hub's own port at `/mcp/NAME`, for hosts that start no program.

A host authenticates with the name in the path and its token in `Authorization`. The SDK validates
and answers requests of both protocol versions. Tool calls, which are nearly all requests, take a
shorter path and get a JSON response unless they wait long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import uuid4

import anyio
import msgspec
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
)
from mcp.shared.transport_context import TransportContext
from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    SERVER_INFO_META_KEY,
    ErrorData,
)
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue

from hubbub.client import Client
from hubbub.errors import ConnectionLost, OperationError
from hubbub.interop.http import BadRequest, Exchange, HttpServer
from hubbub.interop.mcp.participant import McpParticipant
from hubbub.interop.mcp.server import WAITING, ParticipantTools, ToolAnswer, mcp_server
from hubbub.interop.request_clients import (
    Attach,
    RequestClient,
    RequestClients,
    bearer,
    refusal_status,
)
from hubbub.protocol.thread_ids import is_participant_id

__all__ = ["PATH", "HttpDoor"]

PATH = "/mcp"
MAX_BODY = 8 * 1024 * 1024
"""Bytes of a request."""
MAX_VALUES = 100_000
"""JSON values of a request."""
MAX_SESSIONS = 100
"""Sessions per participant; a new one replaces the least recently used."""
VERSION, SESSION = "mcp-protocol-version", "mcp-session-id"
JSON, EVENTS = "application/json", "text/event-stream"


class _Refused(Exception):
    """A request that gets an error response."""

    def __init__(self, status: int, message: str, code: int = INVALID_REQUEST, **headers: str):
        self.status, self.code = status, code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(message)


@dataclass(slots=True)
class _Session:
    """A session of a host that speaks a protocol version with sessions."""

    version: str
    running: dict[object, asyncio.Task[Any] | None] = field(default_factory=dict)
    """By request id."""


class _Host(RequestClient):
    """One participant, and its sessions."""

    def __init__(self, client: Client):
        self._me = McpParticipant(client)
        self.sessions: dict[str, _Session] = {}
        """Least recently used first."""
        super().__init__(client)

    @property
    def is_lost(self) -> bool:
        return self._me.is_lost

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with self._me.listening():
            self.tools = ParticipantTools(self._me)
            self.server = mcp_server(self._me, self.tools)
            self.stamp: JsonValue = {SERVER_INFO_META_KEY: self.server.server_info_stamp}
            yield

    def session(self, id: str) -> _Session:
        """The session of this id. Raises `_Refused` if there is none."""
        if not id:
            raise _Refused(400, "Missing session ID")
        session = self.sessions.pop(id, None)
        if session is None:
            raise _Refused(404, "Session not found")
        self.sessions[id] = session
        return session

    def begin(self, version: str) -> str:
        """Open a session and return its id."""
        while len(self.sessions) >= MAX_SESSIONS:
            del self.sessions[next(iter(self.sessions))]
        id = uuid4().hex
        self.sessions[id] = _Session(version)
        return id


class HttpDoor:
    """A context in which `protocol` returns the protocol for a connection."""

    def __init__(self, attach: Attach, host: str, names: Sequence[str]):
        """`host` is the address the hub listens on, `names` are its other names."""
        self._host, self._names = host, names
        self._clients = RequestClients(attach, _Host)
        self._server = HttpServer(self._handle)
        self.protocol = self._server.protocol

    async def __aenter__(self) -> HttpDoor:
        await self._clients.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.close()
        await self._clients.__aexit__()

    async def _handle(self, exchange: Exchange) -> None:
        try:
            exchange.check()
            await self._respond(exchange)
        except BadRequest as error:
            await _fail(exchange, _Refused(error.status, str(error)))
        except _Refused as refused:
            await _fail(exchange, refused)

    async def _respond(self, exchange: Exchange) -> None:
        refusal = exchange.foreign(self._host, self._names)
        if refusal is not None:
            raise _Refused(403, refusal)
        name = exchange.path.removeprefix(f"{PATH}/").strip("/")
        if exchange.path == PATH or not is_participant_id(name):
            raise _Refused(404, f"the path must name the participant: {PATH}/NAME")
        token = bearer(exchange.header("authorization"))
        key = f"{name} {token}"
        try:
            host = self._clients.connected(key) or await self._clients.join(
                name, "agent", token, exchange.address, key
            )
        except OperationError as exc:
            if (status := refusal_status(exc)) == 401:
                raise _Refused(401, exc.message, www_authenticate="Bearer") from None
            raise _Refused(status, exc.message) from None
        except ConnectionLost as exc:
            raise _Refused(503, f"the hub is unavailable: {exc.reason}") from None
        with host.in_flight():
            version = exchange.header(VERSION)
            modern = version and version not in HANDSHAKE_PROTOCOL_VERSIONS
            if exchange.method == "DELETE" and not modern:
                host.session(exchange.header(SESSION))
                del host.sessions[exchange.header(SESSION)]
                await exchange.respond(200, {}, b"")
                return
            if exchange.method != "POST":  # there are no server-initiated messages to GET
                allowed = "POST" if modern else "POST, DELETE"
                raise _Refused(405, "Method Not Allowed", allow=allowed)
            if not exchange.header("content-type").lower().startswith(JSON):
                raise _Refused(415, f"Content-Type must be {JSON}")
            if not _accepts(exchange.headers.get("accept", ""), JSON, EVENTS):
                raise _Refused(406, f"Not Acceptable: Client must accept {JSON} and {EVENTS}")
            try:
                body = msgspec.json.decode(await exchange.json(MAX_BODY, MAX_VALUES))
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                raise _Refused(400, "Parse error", PARSE_ERROR) from None
            if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
                raise _Refused(400, "the body must be one JSON-RPC request or notification")
            await (self._modern if modern else self._legacy)(host, exchange, body)

    async def _modern(self, host: _Host, exchange: Exchange, body: dict[str, Any]) -> None:
        """Answer a request of the protocol version without sessions."""
        version = exchange.header(VERSION)
        if "id" not in body:
            if version not in MODERN_PROTOCOL_VERSIONS or not isinstance(body.get("method"), str):
                raise _Refused(400, f"{version[:100]!r} has no such notification")
            await exchange.respond(202, {}, b"")
            return
        request = _Request(exchange, body, version)
        inbound = classify_inbound_request(body, headers=exchange.headers)
        if isinstance(inbound, InboundLadderRejection):
            error = ErrorData(code=inbound.code, message=inbound.message, data=inbound.data)
            await request.fail(error)
            return
        await request.answer(host, inbound.client_info, inbound.client_capabilities)

    async def _legacy(self, host: _Host, exchange: Exchange, body: dict[str, Any]) -> None:
        """Answer a request of a protocol version with sessions."""
        method = body.get("method")
        if method == "initialize" and "id" in body:
            request = _Request(exchange, body, HANDSHAKE_PROTOCOL_VERSIONS[-1])
            await request.answer(host)
            return
        session = host.session(exchange.header(SESSION))
        if "id" not in body or method is None:
            if method == "notifications/cancelled":
                params = body.get("params")
                id = params.get("requestId") if isinstance(params, dict) else None
                running = session.running.get(id) if isinstance(id, str | int) else None
                if running is not None:
                    running.cancel()
            await exchange.respond(202, {}, b"")
            return
        request = _Request(exchange, body, exchange.header(VERSION) or session.version)
        session.running[request.id] = asyncio.current_task()
        try:
            await request.answer(host)
        finally:
            session.running.pop(request.id, None)


class _Request:
    """A JSON-RPC request and its exchange. The SDK uses it as the context of the dispatch: it sends
    the host no requests and no notifications.
    """

    can_send_request, message_metadata = False, None

    def __init__(self, exchange: Exchange, body: Mapping[str, Any], version: str):
        """Raises `_Refused` for an invalid request."""
        self._exchange, self.version = exchange, version
        self.id: Any = body["id"]
        self.method: Any = body.get("method")
        self._params: Any = body.get("params")
        if isinstance(self.id, bool) or not isinstance(self.id, (str, int)):
            raise _Refused(400, "the id must be a string or a number")
        invalid = self._params is not None and not isinstance(self._params, dict)
        if invalid or not isinstance(self.method, str):
            raise _Refused(400, "the body must be one JSON-RPC request or notification")

    @property
    def request_id(self) -> Any:
        return self.id

    @property
    def cancel_requested(self) -> anyio.Event:
        return anyio.Event()  # never set: a cancellation cancels the task

    @property
    def transport(self) -> TransportContext:
        return TransportContext(kind="streamable-http", can_send_request=False)

    @property
    def _modern(self) -> bool:
        return self.version not in HANDSHAKE_PROTOCOL_VERSIONS

    async def send_raw_request(self, method: str, params: object, opts: object = None) -> Any:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: object, opts: object = None) -> None:
        """Dropped: there is no channel for notifications."""

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress, which turns the response into an event stream."""
        if not self._exchange.has_started:
            self._exchange.start(200, {"content-type": EVENTS, "cache-control": "no-store"})
        meta = (self._params or {}).get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is None:
            await self._exchange.write(b": waiting\r\n\r\n")
            return
        params = {"progressToken": token, "progress": progress, "total": total, "message": message}
        notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        await self._exchange.write(_event(notification))

    async def answer(self, host: _Host, info: object = None, capabilities: object = None) -> None:
        """Run the request and respond. `info` and `capabilities` are the client's."""
        params = self._params or {}
        try:
            if self.method == "tools/call" and isinstance(params.get("name"), str):
                result = await self._call_tool(host, params)
            else:
                connection = Connection.from_envelope(self.version, info, capabilities)
                result = await serve_one(
                    host.server,
                    self,
                    self.method,
                    self._params,
                    connection=connection,
                    lifespan_state={},
                )
        except Exception as exc:  # noqa: BLE001 - the SDK's own boundary, which logs it
            await self.fail(modern_error_data(exc))
            return
        headers = {}
        if self.method == "initialize":
            headers[SESSION] = host.begin(str(result["protocolVersion"]))
        await self._reply(200, {"result": result}, headers)

    async def _call_tool(self, host: _Host, params: Mapping[str, Any]) -> dict[str, JsonValue]:
        """The result of `tools/call`."""
        arguments = params.get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            raise MCPError(INVALID_PARAMS, "arguments must be an object")

        async def progress(elapsed_s: float, timeout_s: float) -> None:
            await self.progress(elapsed_s, timeout_s, WAITING)

        answer: ToolAnswer = await host.tools.call(params["name"], arguments or {}, progress)
        result: dict[str, JsonValue] = {
            "content": [{"type": "text", "text": answer.text}],
            "isError": answer.failed,
        }
        if answer.value is not None:
            result["structuredContent"] = answer.value
        if self._modern:
            result |= {"resultType": "complete", "_meta": host.stamp}
        return result

    async def fail(self, error: ErrorData) -> None:
        status = ERROR_CODE_HTTP_STATUS.get(error.code, 200) if self._modern else 200
        await self._reply(status, {"error": error.model_dump(mode="json", exclude_none=True)}, {})

    async def _reply(
        self, status: int, body: Mapping[str, JsonValue], headers: Mapping[str, str]
    ) -> None:
        response = {"jsonrpc": "2.0", "id": self.id, **body}
        if self._exchange.has_started:
            await self._exchange.write(_event(response))
        else:
            every = {"content-type": JSON, **headers}
            await self._exchange.respond(status, every, msgspec.json.encode(response))


def _event(message: Mapping[str, Any]) -> bytes:
    return b"event: message\r\ndata: " + msgspec.json.encode(message) + b"\r\n\r\n"


@lru_cache(64)  # a host sends the same header each time
def _accepts(header: str, *types: str) -> bool:
    """Whether an `Accept` header covers all of these types."""
    accepted = {each.partition(";")[0].strip().lower() for each in header.split(",")}
    return all(
        each in accepted or "*/*" in accepted or f"{each.partition('/')[0]}/*" in accepted
        for each in types
    )


async def _fail(exchange: Exchange, refused: _Refused) -> None:
    """Respond with a JSON-RPC error without a request id."""
    error = {"code": refused.code, "message": str(refused)}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
    await exchange.respond(refused.status, {"content-type": JSON, **refused.headers}, body)
