"""MCP over HTTP on the hub's own port: `/mcp/NAME`, for hosts that start no program.

Who asks is proven by the name in the address, and its token in `Authorization`. The SDK says what a
request may be, by either date of the protocol, and answers it; calls of tools, which are nearly all
that a host asks, take a path of their own, and are answered with JSON unless they wait for long.
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
from hubbub.interop.request_clients import Attach, RequestClient, RequestClients, bearer
from hubbub.protocol.thread_ids import is_participant_id

__all__ = ["PATH", "HttpDoor"]

PATH = "/mcp"
MOST_BODY = 8 * 1024 * 1024
"""Bytes of a request."""
MOST_SESSIONS = 100
"""Of one participant; who begins another one ends the one that was not used for longest."""
VERSION, SESSION = "mcp-protocol-version", "mcp-session-id"
JSON, EVENTS = "application/json", "text/event-stream"


class _Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, code: int = INVALID_REQUEST, **headers: str):
        self.status, self.code = status, code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(message)


@dataclass(slots=True)
class _Session:
    """Of a host that speaks the protocol's date with sessions."""

    version: str
    running: dict[object, asyncio.Task[Any] | None] = field(default_factory=dict)
    """By the id of its request."""


class _Host(RequestClient):
    """One participant, and its sessions."""

    def __init__(self, client: Client):
        self._me = McpParticipant(client)
        self.sessions: dict[str, _Session] = {}
        """Those that were used last come last."""
        super().__init__(client)

    @property
    def lost(self) -> bool:
        return self._me.gone

    @asynccontextmanager
    async def staying(self) -> AsyncIterator[None]:
        async with self._me.listening():
            self.tools = ParticipantTools(self._me)
            self.server = mcp_server(self._me, self.tools)
            self.stamp: JsonValue = {SERVER_INFO_META_KEY: self.server.server_info_stamp}
            yield

    def session(self, id: str) -> _Session:
        """Raises `_Refused` if there is none."""
        if not id:
            raise _Refused(400, "Missing session ID")
        session = self.sessions.pop(id, None)
        if session is None:
            raise _Refused(404, "Session not found")
        self.sessions[id] = session
        return session

    def begin(self, version: str) -> str:
        """The id of a new session."""
        while len(self.sessions) >= MOST_SESSIONS:
            del self.sessions[next(iter(self.sessions))]
        id = uuid4().hex
        self.sessions[id] = _Session(version)
        return id


class HttpDoor:
    """A context, in which `protocol` makes what a connection is spoken with."""

    def __init__(self, attach: Attach, host: str, names: Sequence[str] = ()):
        """`attach` leads to the hub, for a peer at an address; `host` is where it listens, `names`
        are its others."""
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
        except BadRequest as wrong:
            await _fail(exchange, _Refused(wrong.status, str(wrong)))
        except _Refused as refused:
            await _fail(exchange, refused)

    async def _respond(self, exchange: Exchange) -> None:
        wrong = exchange.foreign(self._host, self._names)
        if wrong is not None:
            raise _Refused(403, wrong)
        name = exchange.path.removeprefix(f"{PATH}/").strip("/")
        if exchange.path == PATH or not is_participant_id(name):
            raise _Refused(404, f"say who you are: {PATH}/NAME")
        token = bearer(exchange.header("authorization"))
        key = f"{name} {token}"
        try:
            host = self._clients.here(key) or await self._clients.of(
                name, "agent", token, exchange.address, key
            )
        except OperationError as exc:
            raise _Refused(401, exc.message, www_authenticate="Bearer") from None
        except ConnectionLost as exc:
            raise _Refused(503, f"the hub is not there: {exc.reason}") from None
        with host.asking():
            version = exchange.header(VERSION)
            modern = version and version not in HANDSHAKE_PROTOCOL_VERSIONS
            if exchange.method == "DELETE" and not modern:
                host.session(exchange.header(SESSION))
                del host.sessions[exchange.header(SESSION)]
                await exchange.whole(200, {}, b"")
                return
            if exchange.method != "POST":  # nothing is said that was not asked for
                allowed = "POST" if modern else "POST, DELETE"
                raise _Refused(405, "Method Not Allowed", allow=allowed)
            if not exchange.header("content-type").lower().startswith(JSON):
                raise _Refused(415, f"Content-Type must be {JSON}")
            if not _accepts(exchange.headers.get("accept", ""), JSON, EVENTS):
                raise _Refused(406, f"Not Acceptable: Client must accept {JSON} and {EVENTS}")
            try:
                asked = msgspec.json.decode(await exchange.body(MOST_BODY))
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                raise _Refused(400, "Parse error", PARSE_ERROR) from None
            if not isinstance(asked, dict) or asked.get("jsonrpc") != "2.0":
                raise _Refused(400, "the body must be one JSON-RPC request or notification")
            await (self._modern if modern else self._legacy)(host, exchange, asked)

    async def _modern(self, host: _Host, exchange: Exchange, asked: dict[str, Any]) -> None:
        """By the date without sessions."""
        version = exchange.header(VERSION)
        if "id" not in asked:
            if version not in MODERN_PROTOCOL_VERSIONS or not isinstance(asked.get("method"), str):
                raise _Refused(400, f"there are no notifications of {version[:100]!r} here")
            await exchange.whole(202, {}, b"")
            return
        request = _Request(exchange, asked, version)
        found = classify_inbound_request(asked, headers=exchange.headers)
        if isinstance(found, InboundLadderRejection):
            error = ErrorData(code=found.code, message=found.message, data=found.data)
            await request.fail(error)
            return
        await request.answer(host, found.client_info, found.client_capabilities)

    async def _legacy(self, host: _Host, exchange: Exchange, asked: dict[str, Any]) -> None:
        """By a date with sessions."""
        method = asked.get("method")
        if method == "initialize" and "id" in asked:
            request = _Request(exchange, asked, HANDSHAKE_PROTOCOL_VERSIONS[-1])
            await request.answer(host)
            return
        session = host.session(exchange.header(SESSION))
        if "id" not in asked or method is None:
            if method == "notifications/cancelled":
                params = asked.get("params")
                id = params.get("requestId") if isinstance(params, dict) else None
                running = session.running.get(id) if isinstance(id, str | int) else None
                if running is not None:
                    running.cancel()
            await exchange.whole(202, {}, b"")
            return
        request = _Request(exchange, asked, exchange.header(VERSION) or session.version)
        session.running[request.id] = asyncio.current_task()
        try:
            await request.answer(host)
        finally:
            session.running.pop(request.id, None)


class _Request:
    """A request of JSON-RPC on its exchange. For the SDK it is the context of what it dispatches:
    nothing is asked of a host, and of its own accord the network says nothing.
    """

    can_send_request, message_metadata = False, None

    def __init__(self, exchange: Exchange, asked: Mapping[str, Any], version: str):
        """Raises `_Refused` if it is none."""
        self._exchange, self.version = exchange, version
        self.id: Any = asked["id"]
        self.method: Any = asked.get("method")
        self._params: Any = asked.get("params")
        if isinstance(self.id, bool) or not isinstance(self.id, (str, int)):
            raise _Refused(400, "the id must be a string or a number")
        wrong = self._params is not None and not isinstance(self._params, dict)
        if wrong or not isinstance(self.method, str):
            raise _Refused(400, "the body must be one JSON-RPC request or notification")

    @property
    def request_id(self) -> Any:
        return self.id

    @property
    def cancel_requested(self) -> anyio.Event:
        return anyio.Event()  # who cancels ends the task

    @property
    def transport(self) -> TransportContext:
        return TransportContext(kind="streamable-http", can_send_request=False)

    @property
    def _modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS

    async def send_raw_request(self, method: str, params: object, opts: object = None) -> Any:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: object, opts: object = None) -> None:
        """Nobody listens for it."""

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """A sign of life: the answer is a stream from here on."""
        if not self._exchange.begun:
            self._exchange.begin(200, {"content-type": EVENTS, "cache-control": "no-store"})
        meta = (self._params or {}).get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is None:
            await self._exchange.write(b": waiting\r\n\r\n")
            return
        params = {"progressToken": token, "progress": progress, "total": total, "message": message}
        told = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        await self._exchange.write(_event(told))

    async def answer(self, host: _Host, info: object = None, able: object = None) -> None:
        """Do what it asks for, and say what came of it. `info` and `able` are what the client says
        of itself."""
        params = self._params or {}
        try:
            if self.method == "tools/call" and isinstance(params.get("name"), str):
                result = await self._called(host, params)
            else:
                connection = Connection.from_envelope(self.version, info, able)
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

    async def _called(self, host: _Host, params: Mapping[str, Any]) -> dict[str, JsonValue]:
        """The result of `tools/call`."""
        arguments = params.get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            raise MCPError(INVALID_PARAMS, "arguments must be an object")

        async def progress(passed: float, most: float) -> None:
            await self.progress(passed, most, WAITING)

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
        told = {"jsonrpc": "2.0", "id": self.id, **body}
        if self._exchange.begun:
            await self._exchange.write(_event(told))
        else:
            told_as = {"content-type": JSON, **headers}
            await self._exchange.whole(status, told_as, msgspec.json.encode(told))


def _event(told: Mapping[str, Any]) -> bytes:
    return b"event: message\r\ndata: " + msgspec.json.encode(told) + b"\r\n\r\n"


@lru_cache(64)  # a host says the same each time
def _accepts(header: str, *wanted: str) -> bool:
    """Whether a header `Accept` names all of these types."""
    given = {each.partition(";")[0].strip().lower() for each in header.split(",")}
    return all(
        each in given or "*/*" in given or f"{each.partition('/')[0]}/*" in given for each in wanted
    )


async def _fail(exchange: Exchange, refused: _Refused) -> None:
    """An error, as JSON-RPC has it where no request could be read."""
    error = {"code": refused.code, "message": str(refused)}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
    await exchange.whole(refused.status, {"content-type": JSON, **refused.headers}, body)
