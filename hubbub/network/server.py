"""The hub's server: WebSocket for participants, some HTTP, and a watch over the connections.

One timer checks all sockets every second (heartbeats, peers that do not read, peers that never
identify), as a task per connection would take more memory than the connection itself.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, cast

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.protocol import State

from hubbub.clock import Clock
from hubbub.config.models import Limits
from hubbub.config.units import ListenAddress, parse_address
from hubbub.errors import UserError
from hubbub.network.connection import TOO_SLOW, Connection, ConnectionOutlet, Flusher
from hubbub.network.http import HttpSide, Pages
from hubbub.network.hub import Hub
from hubbub.network.limits import ConnectionCount
from hubbub.network.path_switch import Doors, PathSwitch
from hubbub.network.session import Session
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.wire import Outlet, SessionState

__all__ = [
    "Listening",
    "Sessions",
    "Watch",
    "bind",
    "connection_class",
    "parse_listen",
    "quiet_logger",
    "refuse_open",
    "serve_hub",
    "serve_sockets",
]

WATCH_EVERY_S = 1.0
BACKLOG = 1024


class Listening(ListenAddress):
    """Where a hub can be reached."""

    @property
    def url(self) -> str:
        """The WebSocket URL."""
        return f"ws://{self}"


def parse_listen(listen: str) -> ListenAddress:
    """The host and port in `listen`, `--listen`, `--hubs` and the like. Raises `UserError`."""
    try:
        return parse_address(listen)
    except ValueError as error:
        raise UserError(str(error)) from None


@asynccontextmanager
async def serve_hub(
    hub: Hub,
    listen: str | None = None,
    *,
    pages: Pages | None = None,
    doors: Doors | None = None,
) -> AsyncIterator[Listening]:
    """Serve a running hub on `listen` (default: from its config) until the context ends. `doors`
    get the requests for their paths.

    Raises `UserError` if the address is invalid or in use, or if an open network would be reachable
    from other machines.
    """
    host, port = parse_listen(listen or hub.config.listen)
    refuse_open(host, open_to_all=hub.config.auth == "open")
    sockets = bind(host, port)
    listening = Listening(host, sockets.getsockname()[1])
    http = HttpSide(
        host=host,
        pages=pages,
        not_ready=lambda: _not_ready(hub),
        metrics=lambda: _metrics(hub),
        names=hub.config.hosts,
    )

    watch = Watch(hub.gateway, hub.clock)
    idle = set[asyncio.Transport]()
    async with serve_sockets(
        sockets,
        watch,
        _connections(hub, doors, idle),
        lambda _, request: http.respond(request),
        compression=hub.config.compression,
    ):
        try:
            yield listening
        finally:
            for transport in list(idle):
                transport.close()
            await hub.drain()


@asynccontextmanager
async def serve_sockets(
    sockets: socket.socket,
    watch: Watch,
    connections: type[Connection],
    respond: Callable[[ServerConnection, Request], Awaitable[Response | None]],
    *,
    compression: bool,
) -> AsyncIterator[None]:
    """Serve watched WebSockets until the context ends; `respond` answers all other requests, and
    handshakes that are refused."""

    async def process_request(connection: ServerConnection, request: Request) -> Response | None:
        if isinstance(connection, Connection) and connection.refusal is not None:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, connection.refusal + "\n")
        return await respond(connection, request)

    async with (
        serve(
            watch.handle,
            sock=sockets,
            backlog=BACKLOG,
            create_connection=connections,
            process_request=process_request,
            compression="deflate" if compression else None,
            max_size=4 * watch.sessions.limits.frame,
            ping_interval=None,
            close_timeout=1.0,
            server_header=None,
            logger=quiet_logger(),
        ),
        asyncio.TaskGroup() as tasks,
    ):
        watching = tasks.create_task(watch.run(), name="watch")
        try:
            yield
        finally:
            watching.cancel()


def _metrics(hub: Hub) -> bytes:
    from hubbub.network.exposition import render  # imports a library that is rarely needed

    return render(hub.kernel.metrics)


async def _not_ready(hub: Hub) -> str:
    """Why the hub is not ready for clients; empty if it is."""
    if hub.draining:
        return "stopping"
    return "" if await hub.readiness.writable() else "the store cannot be written"


def refuse_open(host: str, *, open_to_all: bool) -> None:
    """Raises `UserError` if other machines could reach a network without tokens."""
    if open_to_all and not ListenAddress(host, 0).loopback:
        raise UserError(
            f"listen: {host} can be reached from other machines, which `auth: open` forbids; "
            "use `auth: tokens` and `hubbub tokens add <participant>`, or listen on 127.0.0.1"
        )


def _address(connection: Connection) -> str:
    peer = connection.remote_address
    return str(peer[0]) if peer else ""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises `UserError` if the address is invalid or in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"the address {host}:{port} is in use, perhaps by another network: stop it, or "
                "choose another port"
            ) from None
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    bound.setblocking(False)
    return bound


def connection_class(limits: Limits) -> type[Connection]:
    """The connection class of one server, with the state that its connections share."""
    shared = {
        "flusher": Flusher(),
        "count": ConnectionCount(limits.connections, limits.strangers),
        "max_unsent": limits.unsent,
    }
    return type("HubConnection", (Connection,), shared)


def _connections(hub: Hub, doors: Doors | None, idle: set[asyncio.Transport]) -> type[Connection]:
    """The factory of connections, behind a path switch if there are doors."""
    connection_type = connection_class(hub.limits)
    if not doors:
        return connection_type

    def switch(*args: Any, **kwargs: Any) -> PathSwitch:  # the library's own
        return PathSwitch(
            partial(connection_type, *args, **kwargs), doors, connection_type.count, idle
        )

    return cast("type[Connection]", switch)  # the library only calls it


def quiet_logger() -> logging.Logger:
    """A logger that drops the library's report of each broken handshake, as peers could flood
    it."""
    logger = logging.getLogger("hubbub.websockets")
    logger.setLevel(logging.CRITICAL)
    return logger


class _ConnectionWatch:
    """The watch's state for one connection."""

    __slots__ = ("accepted", "heard_at", "moved_at", "pinged_at", "session")

    def __init__(self, session: Session, now: float):
        self.session = session
        self.heard_at = self.moved_at = now
        self.accepted = 0
        self.pinged_at: float | None = None


class Sessions(Protocol):
    """Accepts the server's connections."""

    limits: Limits
    silent: Callable[[str], object]

    def attach(self, outlet: Outlet, address: str = "") -> Session: ...


class Watch:
    """Handles connections, and checks once a second that they are alive."""

    def __init__(self, sessions: Sessions, clock: Clock):
        self.sessions, self._clock = sessions, clock
        self._watched: dict[Connection, _ConnectionWatch] = {}

    async def handle(self, connection: ServerConnection) -> None:
        """Serve a connection from handshake to end."""
        assert isinstance(connection, Connection)
        session = self.sessions.attach(ConnectionOutlet(connection), _address(connection))
        self._watched[connection] = _ConnectionWatch(session, self._clock.monotonic())
        try:
            connection.start(session)
            await connection.wait_closed()
        finally:
            del self._watched[connection]
            session.lost()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            now = self._clock.monotonic()
            for connection, watched in list(self._watched.items()):
                self._check(connection, watched, now)

    def _check(self, connection: Connection, watched: _ConnectionWatch, now: float) -> None:
        if connection.protocol.state is not State.OPEN:
            return
        session, limits = watched.session, self.sessions.limits
        accepted, unsent = connection.accepted(), connection.unsent()
        if accepted > watched.accepted or unsent == 0:
            watched.moved_at = now
        watched.accepted = accepted  # falls while pongs pile up, as they are not counted
        patience = limits.unsent_for if unsent <= limits.unsent else 0.0
        if now - watched.moved_at > patience:
            session.close(CloseCode.SLOW, TOO_SLOW)
        elif session.state is SessionState.CONNECTED:
            if now - session.opened > limits.identify_within:
                session.close(CloseCode.AUTH, "no identify in time")
        else:
            self._check_heartbeat(connection, watched, now)

    def _check_heartbeat(
        self, connection: Connection, watched: _ConnectionWatch, now: float
    ) -> None:
        limits = self.sessions.limits
        if connection.has_received:
            connection.has_received = False
            watched.heard_at, watched.pinged_at = now, None
        elif watched.pinged_at is not None:
            if now - watched.pinged_at > limits.heartbeat_reply:
                watched.session.close(CloseCode.HEARTBEAT, "no answer to a ping")
                self.sessions.silent(watched.session.participant)
        elif now - watched.heard_at > limits.heartbeat:
            watched.pinged_at = now
            connection.protocol.send_ping(b"")
            connection.send_data()
