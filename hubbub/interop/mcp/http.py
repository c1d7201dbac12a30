"""MCP over HTTP on the hub's own port: `/mcp/NAME`, for hosts that start no program.

Who asks is proven as everywhere: the name in the address, and its token in `Authorization`, go to
the hub as those of any client. Each has one client in this process, for as long as it asks.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState
from websockets.datastructures import Headers

from hubbub.client import Client
from hubbub.client.memory import MemoryTransport
from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.interop.mcp.participant import McpParticipant
from hubbub.interop.mcp.server import mcp_server
from hubbub.network.http import refusal
from hubbub.protocol.thread_ids import is_participant_id
from hubbub.protocol.wire import Inlet, Outlet

__all__ = ["PATH", "HttpDoor"]

Attach: TypeAlias = Callable[[Outlet, str], Inlet]
PATH = "/mcp"
MOST_SESSIONS = 100
"""Of one participant."""
IDLE_S = 300.0
"""Seconds without a request after which a participant leaves."""


class _Guest:
    """One participant, and its sessions: a task of its own, until it is asked to leave."""

    sessions: StreamableHTTPSessionManager

    def __init__(self, client: Client):
        self.requests = 0
        self.seen = asyncio.get_running_loop().time()
        self._client, self._me = client, McpParticipant(client)
        self._leaving, self._there = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._stay())

    @property
    def gone(self) -> bool:
        return self._task.done() or self._me.gone

    async def joined(self) -> None:
        """Wait until it is there. Raises `OperationError` and `ConnectionLost`."""
        there = asyncio.create_task(self._there.wait())
        try:
            await asyncio.wait({there, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            there.cancel()
        if self._task.done():
            self._task.result()

    async def _stay(self) -> None:
        async with self._client, self._me.listening():
            self.sessions = StreamableHTTPSessionManager(
                mcp_server(self._me), session_idle_timeout=IDLE_S, max_sessions=MOST_SESSIONS
            )
            async with self.sessions.run():
                self._there.set()
                await self._leaving.wait()

    async def leave(self) -> None:
        self._leaving.set()
        await asyncio.wait({self._task}, timeout=1.0)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class HttpDoor:
    """A context, in which `protocol` makes what a connection is spoken with."""

    def __init__(self, attach: Attach, host: str, names: Sequence[str] = ()):
        """`attach` leads to the hub, for a peer at an address; `host` is where it listens, `names`
        are its others."""
        self._attach, self._host, self._names = attach, host, names
        self._guests: dict[str, _Guest] = {}
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
        self._watch = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._watch.cancel()
        for guest in self._guests.values():
            await guest.leave()
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
            token = _token(headers.get("Authorization", ""))
            guest = await self._guest(name, token, scope["client"][0] if scope["client"] else "")
        except OperationError as exc:
            return await _answer(send, 401, exc.message)
        except ConnectionLost as exc:
            return await _answer(send, 503, f"the hub is not there: {exc.reason}")
        guest.requests += 1
        try:
            await guest.sessions.handle_request(scope, receive, send)
        finally:
            guest.requests -= 1
            guest.seen = asyncio.get_running_loop().time()
        return None

    async def _guest(self, name: str, token: str, address: str) -> _Guest:
        """Who brings this token, when it is there. Raises `OperationError` where the hub refuses
        it, which with a wrong one may take a while: nobody else waits for that."""
        key = f"{name} {hashlib.sha256(token.encode()).hexdigest()}"
        guest = self._guests.get(key)
        if guest is None or guest.gone:
            transport, gone = MemoryTransport(lambda outlet: self._attach(outlet, address)), guest
            guest = self._guests[key] = _Guest(
                Client(transport, name, "agent", token=token or None)
            )
            if gone is not None:
                await gone.leave()
        try:
            await guest.joined()
        except HubbubError:
            if self._guests.get(key) is guest:
                del self._guests[key]
            raise
        return guest

    async def _look(self) -> None:
        """Let those leave who ask no more."""
        while True:
            await asyncio.sleep(IDLE_S / 5)
            now = asyncio.get_running_loop().time()
            for key, guest in list(self._guests.items()):
                if guest.gone or (not guest.requests and now - guest.seen > IDLE_S):
                    self._guests.pop(key, None)
                    await guest.leave()


def _token(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


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
