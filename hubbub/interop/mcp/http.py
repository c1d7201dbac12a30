"""MCP over HTTP on the hub's own port: `/mcp/NAME`, for hosts that start no program.

Who asks is proven by the name in the address, and its token in `Authorization`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState
from websockets.datastructures import Headers

from hubbub.client import Client
from hubbub.errors import ConnectionLost, OperationError
from hubbub.interop.guests import IDLE_S, Attach, Guest, Guests, bearer
from hubbub.interop.mcp.participant import McpParticipant
from hubbub.interop.mcp.server import mcp_server
from hubbub.network.http import refusal
from hubbub.protocol.thread_ids import is_participant_id

__all__ = ["PATH", "HttpDoor"]

PATH = "/mcp"
MOST_SESSIONS = 100
"""Of one participant."""


class _Host(Guest):
    """One participant, and its sessions."""

    sessions: StreamableHTTPSessionManager

    def __init__(self, client: Client):
        self._me = McpParticipant(client)
        super().__init__(client)

    @property
    def lost(self) -> bool:
        return self._me.gone

    @asynccontextmanager
    async def staying(self) -> AsyncIterator[None]:
        async with self._me.listening():
            self.sessions = StreamableHTTPSessionManager(
                mcp_server(self._me), session_idle_timeout=IDLE_S, max_sessions=MOST_SESSIONS
            )
            async with self.sessions.run():
                yield


class HttpDoor:
    """A context, in which `protocol` makes what a connection is spoken with."""

    def __init__(self, attach: Attach, host: str, names: Sequence[str] = ()):
        """`attach` leads to the hub, for a peer at an address; `host` is where it listens, `names`
        are its others."""
        self._host, self._names = host, names
        self._guests = Guests(attach, _Host)
        self._config = uvicorn.Config(
            self._app,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        self._state = ServerState()

    async def __aenter__(self) -> HttpDoor:
        self._config.load()
        await self._guests.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._guests.__aexit__()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=1.0)

    def protocol(self) -> asyncio.Protocol:
        """Speaks HTTP on one connection."""
        return H11Protocol(self._config, self._state, {})

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI application. A connection ends with its answer: what a proxy asks next on one
        may be the hub's business.
        """
        await self._respond(scope, receive, partial(_last, send))

    async def _respond(self, scope: Any, receive: Any, send: Any) -> None:
        headers = Headers((k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"])
        wrong = refusal(headers, self._host, self._names)
        if wrong is not None:
            return await _answer(send, 403, wrong)
        name = scope["path"].removeprefix(f"{PATH}/").strip("/")
        if scope["path"] == PATH or not is_participant_id(name):
            return await _answer(send, 404, f"say who you are: {PATH}/NAME")
        try:
            token = bearer(headers.get("Authorization", ""))
            address = scope["client"][0] if scope["client"] else ""
            guest = await self._guests.of(name, "agent", token, address)
        except OperationError as exc:
            return await _answer(send, 401, exc.message)
        except ConnectionLost as exc:
            return await _answer(send, 503, f"the hub is not there: {exc.reason}")
        with guest.asking():
            await guest.sessions.handle_request(scope, receive, send)
        return None


async def _last(send: Any, message: Any) -> None:
    """Send it; after an answer nothing comes."""
    if message["type"] == "http.response.start":
        message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
    await send(message)


async def _answer(send: Any, status: int, text: str) -> None:
    """An error, as JSON-RPC has it."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": text}}
    headers = [(b"content-type", b"application/json")]
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(error).encode()})
