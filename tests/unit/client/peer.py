"""A small scripted hub, in process or over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import JsonValue
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from hubbub.client import (
    Backoff,
    Client,
    ClientOptions,
    Disconnected,
    MemoryTransport,
    Transport,
    WebSocketTransport,
)
from hubbub.clock import Clock, SystemClock
from hubbub.errors import ConnectionLost
from hubbub.protocol.frames import Cursor, Event, Identify, Ready, Signal
from hubbub.protocol.wire import Inlet, Outlet

T = TypeVar("T")
Frame = dict[str, JsonValue]
DEADLINE_S = 30.0
NO_DELAY = Backoff(first_s=0, most_s=0, retries=3)
LIMITS: Frame = {
    "frame_bytes": 4096,
    "json_depth": 32,
    "text_bytes": 2048,
    "calls_per_second": 20,
    "burst": 100,
    "channels": 128,
    "thread_depth": 5,
    "unacknowledged": 256,
}


class RecordedDelays(list[float]):
    """A `sleep` that records its delays and does not wait."""

    async def __call__(self, delay: float) -> None:
        self.append(delay)


async def soon(waiting: Awaitable[T]) -> T:
    """Wait, but fail instead of hanging."""
    async with asyncio.timeout(DEADLINE_S):
        return await waiting


@dataclass
class Answer:
    """How the peer answers one `identify`."""

    resumed: bool = True
    cursor: int | None = None
    """None: the position in the client's cursor, or 0."""
    epoch: str = "epoch-1"
    network: str = "testnet"
    versions: list[JsonValue] = field(default_factory=lambda: ["hubbub.v1"])
    error: Frame | None = None
    """Sent in place of `ready`."""
    close: tuple[int, str] | None = None
    """Close instead of sending `ready` (after the error, if there is one)."""
    silent: bool = False
    left_out: list[JsonValue] = field(default_factory=list)
    """The parts that `ready` omits and the client must request."""


class Connection:
    """The peer's end of one connection."""

    def __init__(self, outlet: Outlet, answer: Answer):
        self.outlet, self._answer = outlet, answer
        self.identify: Identify | None = None
        self.introduced = asyncio.Event()
        self.gone = asyncio.Event()
        self._frames: asyncio.Queue[Frame] = asyncio.Queue()
        self.send(
            op="hello",
            versions=answer.versions,
            network=answer.network,
            epoch=answer.epoch,
            heartbeat_s=25,
            limits=LIMITS,
        )

    # Inlet ------------------------------------------------------------------------------------

    def receive(self, frame: bytes) -> None:
        data = json.loads(frame)
        if data["op"] != "identify":
            self._frames.put_nowait(data)
            return
        self.identify = Identify.model_validate(data)
        self._welcome()
        self.introduced.set()

    def drained(self) -> None:
        pass  # this hub never throttles

    def lost(self) -> None:
        assert not self.gone.is_set(), "lost() is called only once"
        self.gone.set()

    def _welcome(self) -> None:
        answer, identify = self._answer, self.identify
        assert identify is not None
        if answer.error is not None:
            self.send(op="error", **answer.error)
        if answer.close is not None:
            self.outlet.close(*answer.close)
        if answer.error is not None or answer.close is not None or answer.silent:
            return
        cursor = answer.cursor
        if cursor is None:
            cursor = identify.cursor.seq if identify.cursor else 0
        operations: list[JsonValue] = [
            {"name": "list_participants", "description": "-", "permission": "read"},
            {"name": "send_text_message", "description": "-", "permission": "write"},
        ]
        self.send(
            op="ready",
            participant=identify.participant,
            kind=identify.kind,
            resumed=answer.resumed,
            head=1000,
            cursor=cursor,
            operations=operations,
            left_out=answer.left_out,
        )

    # For tests --------------------------------------------------------------------------------

    def send(self, **frame: JsonValue) -> None:
        self.outlet.write(json.dumps(frame).encode())

    def event(self, seq: int, prev: int, text: str = "hi") -> None:
        self.send(op="event", seq=seq, prev=prev, tseq=seq, message=message(seq, text))

    def result(self, call: Frame, value: JsonValue = None) -> None:
        self.send(op="result", ref=call["ref"], value=value)

    def refuse(self, call: Frame, code: str, **more: JsonValue) -> None:
        self.send(op="error", ref=call["ref"], code=code, message=f"refused: {code}", **more)

    def drop(self, code: int = 4001, reason: str = "") -> None:
        self.outlet.close(code, reason)

    async def frame(self, op: str) -> Frame:
        """The next received frame, which must be an `op`."""
        frame = await soon(self._frames.get())
        assert frame["op"] == op, frame
        return frame

    async def call(self) -> Frame:
        return await self.frame("call")

    async def ended(self) -> list[Frame]:
        """Wait until the client has left; returns the frames that no test has read."""
        await soon(self.gone.wait())
        return [self._frames.get_nowait() for _ in range(self._frames.qsize())]


class Peer:
    """The scripted hub. Each connection takes the next of `answers`, or a plain welcome."""

    def __init__(self) -> None:
        self.transport: Transport = MemoryTransport(self.attach)
        self.answers: deque[Answer] = deque()
        self.away = False
        """Refuse connections (in process only)."""
        self.opened = 0
        self._connections: asyncio.Queue[Connection] = asyncio.Queue()

    def attach(self, outlet: Outlet) -> Inlet:
        if self.away:
            raise ConnectionRefusedError(111, "Connect call failed")
        self.opened += 1
        connection = Connection(outlet, self.answers.popleft() if self.answers else Answer())
        self._connections.put_nowait(connection)
        return connection

    async def connection(self) -> Connection:
        """The next connection in opening order, once its client has identified itself."""
        connection = await soon(self._connections.get())
        await soon(connection.introduced.wait())
        return connection

    async def rejoined(self, client: Client) -> Connection:
        """The next connection, once the client has processed its `ready`."""
        connection = await self.connection()
        reply = client.post("list_participants")
        connection.result(await connection.call())
        await soon(reply)
        return connection

    def client(
        self,
        name: str = "ann",
        *,
        backoff: Backoff = NO_DELAY,
        cursor: Cursor | None = None,
        clock: Clock | None = None,
    ) -> Client:
        options = ClientOptions(backoff=backoff, clock=clock or SystemClock())
        return Client(self.transport, name, "human", cursor=cursor, options=options)


class _SocketOutlet:
    """An `Outlet` over a server's WebSocket; one task writes the queued frames."""

    def __init__(self, socket: ServerConnection):
        self._socket = socket
        self._queue: asyncio.Queue[Callable[[], Coroutine[None, None, None]]] = asyncio.Queue()

    def write(self, frame: bytes) -> None:
        self._queue.put_nowait(lambda: self._socket.send(frame, text=True))

    def close(self, code: int, reason: str) -> None:
        self._queue.put_nowait(lambda: self._socket.close(code, reason))

    def identified(self) -> None:
        pass

    def unsent(self) -> int:
        return 0

    async def pump(self) -> None:
        with suppress(ConnectionClosed):
            while True:
                await (await self._queue.get())()


@asynccontextmanager
async def socket_peer() -> AsyncIterator[Peer]:
    """A peer on a real socket of this machine."""
    peer = Peer()

    async def handle(socket: ServerConnection) -> None:
        outlet = _SocketOutlet(socket)
        inlet = peer.attach(outlet)
        pump = asyncio.create_task(outlet.pump())
        with suppress(ConnectionClosed):
            while True:
                inlet.receive(await socket.recv(decode=False))
        pump.cancel()
        inlet.lost()

    async with serve(handle, "127.0.0.1", 0, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        peer.transport = WebSocketTransport(f"ws://127.0.0.1:{port}")
        yield peer


@asynccontextmanager
async def memory_peer() -> AsyncIterator[Peer]:
    """A peer in this process."""
    yield Peer()


class Consumer:
    """Reads a client's events one at a time."""

    def __init__(self, client: Client):
        self._events = client.events()

    async def next(self) -> Ready | Event | Signal | Disconnected:
        return await soon(anext(self._events))

    async def ready(self) -> Ready:
        item = await self.next()
        assert isinstance(item, Ready), item
        return item

    async def event(self) -> Event:
        item = await self.next()
        assert isinstance(item, Event), item
        return item

    async def disconnected(self) -> Disconnected:
        item = await self.next()
        assert isinstance(item, Disconnected), item
        return item

    async def end(self) -> ConnectionLost:
        """The error that ends the stream, which must be next."""
        try:
            item = await self.next()
        except ConnectionLost as lost:
            return lost
        raise AssertionError(f"the stream did not end: {item}")


def message(seq: int, text: str = "hi", thread: str = "dm.ann.bob") -> Frame:
    """A message from bob in wire format."""
    return {
        "id": f"m{seq}",
        "seq": seq,
        "thread_id": thread,
        "tseq": seq,
        "sender_id": "bob",
        "sender_kind": "agent",
        "type": "direct",
        "recipients": ["ann"],
        "content": text,
        "interaction_id": f"i{seq}",
        "hop": 0,
        "sent_at": "2026-01-02T03:04:05Z",
    }
