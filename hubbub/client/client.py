"""A participant's end of the protocol: calls that survive lost connections, events without gaps.

    async with Client(WebSocketTransport("ws://127.0.0.1:4820"), "ann", "human") as client:
        await client.call("send_text_message", to="bob", text="hello")
        async for item in client.events():
            match item:
                case Event():
                    print(item.message.text)
                    await client.ack(item.seq)

At least once from the hub, `cid` on writes, and acknowledgement after the effect make effects
happen exactly once: an event is handed out once by one client, and again only to a client that
starts anew from a cursor before it.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self, TypeVar

from pydantic import JsonValue

from hubbub.client.calls import Backoff, PendingCall, PendingCalls
from hubbub.client.items import Disconnected, Events
from hubbub.client.snapshot import complete, decode, refused
from hubbub.client.stream import Stream, Verdict
from hubbub.client.transport import ABNORMAL, Transport, Wire
from hubbub.clock import Clock, SystemClock
from hubbub.errors import ConnectionLost, OperationError
from hubbub.ids import new_ulid
from hubbub.protocol.codes import CloseCode, ErrorCode, may_reconnect
from hubbub.protocol.frames import (
    VERSION,
    Cursor,
    ErrorFrame,
    Event,
    Hello,
    HubFrame,
    Identify,
    Ready,
    Reconnect,
    Result,
    Signal,
)
from hubbub.protocol.messages import Card, Kind
from hubbub.waiting import done_within

__all__ = ["Client", "ClientOptions"]

HANDSHAKE_S = 10.0
"""Seconds for connecting, `hello` and `ready` together."""
FLUSH_S = 1.0
"""Seconds that leaving waits for what is still to be written."""
_CLOSES: dict[str, CloseCode] = {
    ErrorCode.AUTH_FAILED: CloseCode.AUTH,
    ErrorCode.UNSUPPORTED_VERSION: CloseCode.VERSION,
}


F = TypeVar("F", Hello, Ready)


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """What few clients say of themselves."""

    card: Card | None = None
    """What others see of the participant; None: what the hub knows of it."""
    observe: bool = False
    """Hear every message of the network. For owners."""
    schemas: bool = True
    """Whether operations come with the JSON Schemas of what they take, which only tools need.
    """
    backoff: Backoff = field(default_factory=Backoff)
    clock: Clock = field(default_factory=SystemClock)


class Client:
    """One participant on one connection at a time, for as long as its `async with` block lasts.

    Entering connects, and raises `OperationError` when the hub refuses (`auth_failed`,
    `unsupported_version`, ...) and `ConnectionLost` when there is none. From then on a lost
    connection is taken up again by itself, unless the close code forbids it (page 2). Leaving
    writes what was posted (for at most a second), closes, and ends every task.

    hello    the latest `hello`: limits, epoch, name of the network
    ready    the latest `ready`: threads, participants, operations as of that moment
    """

    hello: Hello
    ready: Ready

    def __init__(
        self,
        transport: Transport,
        participant: str,
        kind: Kind = "agent",
        *,
        token: str | None = None,
        turns: bool = False,
        cursor: Cursor | Literal["latest"] | None = None,
        options: ClientOptions | None = None,
    ):
        """`turns` says that it is an agent that records its turns. `cursor` is where an earlier
        client stopped, or `latest` (the head of the log); without it the hub's own cursor counts.
        """
        options = options or ClientOptions()
        self._schemas = options.schemas
        self.participant = participant
        self._transport = transport
        self._identity = Identify(
            version=VERSION,
            participant=participant,
            kind=kind,
            token=token,
            card=options.card,
            turns=turns,
            observe=options.observe,
            latest=cursor == "latest",
        )
        self._backoff, self._clock = options.backoff, options.clock
        self._stream = Stream(None if cursor == "latest" else cursor)
        self._events = Events(self._stream.hand_out)
        self._calls = PendingCalls()
        self._outgoing: deque[PendingCall | bytes] = deque()
        self._acked = 0  # sent to the hub on this connection
        self._output = asyncio.Event()
        self._idle = asyncio.Event()
        self._connected = False
        self._come_back_s: float | None = None
        self._offered: frozenset[str] = frozenset()
        self._reads: frozenset[str] = frozenset()
        self._runner: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        wire = await self._connect()
        self._runner = asyncio.create_task(self._run(wire), name=f"hubbub {self.participant}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        runner = self._runner
        assert runner is not None, "entered before"
        try:
            # If it is not idle by then, the hub reads no more: what is unwritten will never be.
            await done_within(self._idle.wait(), FLUSH_S)
        finally:
            runner.cancel()
            await asyncio.wait([runner])
        if not runner.cancelled() and (crash := runner.exception()) is not None:
            raise crash

    @property
    def network(self) -> str:
        """The network's name."""
        return self.hello.network

    @property
    def cursor(self) -> Cursor | None:
        """The last acknowledged position: what a later client may start from."""
        return self._stream.cursor

    def offers(self, name: str) -> bool:
        """Whether the hub has an operation: an older one may not know it."""
        return name in self._offered

    # Calls --------------------------------------------------------------------------------------

    async def call(self, name: str, /, *, cid: str | None = None, **args: object) -> JsonValue:
        """Ask for an operation and wait for its result.

        The arguments are JSON or pydantic models. Writes get a fresh `cid` unless one is given. A
        lost connection is survived: the call is sent again, with the same `cid`, after the resume.
        Temporary errors (`rate_limited`, `store_unavailable`, `draining`) are retried up to
        `Backoff.retries` times, with the delay that the hub names or else a growing one.

        Raises `OperationError` when the hub refuses or could only refuse (arguments that are no
        JSON, too much), and `ConnectionLost` when the client is closed for good.
        """
        cid = cid or self._fresh_cid(name)
        attempt = 0
        while True:
            try:
                return await self.post(name, cid=cid, **args)
            except OperationError as exc:
                if not exc.temporary or attempt >= self._backoff.retries:
                    raise
                await self._backoff.sleep(self._backoff.after(exc.retry_after_s or 0, attempt))
            attempt += 1

    def post(
        self, name: str, /, *, cid: str | None = None, **args: object
    ) -> asyncio.Future[JsonValue]:
        """Ask for an operation without waiting. Frames leave in the order of the calls.

        As `call`, but temporary errors are not retried: that would change the order. The future
        may be dropped; its exception is then ignored.
        """
        call = self._calls.make(name, args, cid or self._fresh_cid(name), self.hello.limits)
        if not call.answer.done():
            self._write_soon(call)
        return call.answer

    def _fresh_cid(self, name: str) -> str | None:
        return None if name in self._reads else new_ulid()

    # Events -------------------------------------------------------------------------------------

    def events(self) -> Events:
        """What arrives, in order, for one consumer.

        Begins with `Ready`. Every reconnection gives another one: with `resumed=True` the stream
        simply goes on; with `resumed=False` forget what you know and start afresh from it (events
        that waited to be handed out are dropped, they belong to the old state). An event is handed
        out once and never behind a gap. One's own messages arrive as events only when another
        connection sent them, or when the connection was lost about that time.

        Ends by raising `ConnectionLost` when the hub closed for good or the client was left.
        Who stops and asks again goes on where it stopped; RuntimeError for two at the same time.
        """
        return self._events

    async def ack(self, seq: int) -> None:
        """Everything up to `seq` is safely with this participant, and its effects are.

        Cheap: the acknowledgement is remembered as the place to resume from and sent to the hub
        together with those of the same moment. The hub has at most 256 unacknowledged events on
        its way. A position that was not handed out belongs to an older stream and is passed over.
        """
        if self._stream.ack(seq):
            self._idle.clear()
            self._output.set()

    async def written(self) -> None:
        """Wait until all that was asked and acknowledged so far is on its way to the hub, or the
        connection is gone."""
        await self._idle.wait()

    async def signal(self, type: str, thread_id: str | None = None, data: JsonValue = None) -> None:
        """Tell something ephemeral (typing, activity). Not sent while there is no connection."""
        frame = Signal(type=type, thread_id=thread_id, data=data)
        if self._connected:
            self._write_soon(frame.model_dump_json(exclude_none=True).encode())

    # The connection -----------------------------------------------------------------------------

    async def _connect(self) -> Wire:
        """Open, `hello`, `identify`, `ready`. Raises `OperationError` or `ConnectionLost`."""
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                wire = await self._transport.open()
                try:
                    await self._introduce(wire)
                except BaseException:
                    await wire.close()
                    raise
        except TimeoutError as exc:
            raise ConnectionLost(ABNORMAL, "the hub does not answer") from exc
        except OSError as exc:
            raise ConnectionLost(ABNORMAL, _why(exc)) from exc
        return wire

    async def _introduce(self, wire: Wire) -> None:
        hello = await _expect(wire, Hello)
        if VERSION not in hello.versions:
            raise OperationError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the hub speaks {', '.join(hello.versions)}, this client {VERSION}",
            )
        identify = self._identity.model_copy(update={"cursor": self._stream.resume})
        await wire.send(identify.model_dump_json(exclude_none=True))
        ready, early = await complete(wire, await _expect(wire, Ready), schemas=self._schemas)
        self._begin(hello, ready)
        for frame in early:
            self._take(frame)

    def _begin(self, hello: Hello, ready: Ready) -> None:
        self.hello, self.ready = hello, self._stream.begin(hello.epoch, ready, hello.run)
        self._offered = frozenset(o.name for o in ready.operations)
        self._reads = frozenset(o.name for o in ready.operations if o.permission == "read")
        self._events.put(self.ready)
        self._acked = ready.cursor
        self._come_back_s = None
        self._connected = True
        self._outgoing = deque(self._calls.waiting)
        self._idle.clear()
        self._output.set()

    async def _run(self, wire: Wire) -> None:
        """Serve one connection after the other until the last one is over."""
        end = ConnectionLost(1000, "the client was closed")
        attempt = 0
        try:
            while True:
                since = self._clock.monotonic()
                end = await self._serve(wire)
                if self._clock.monotonic() - since >= self._backoff.steady_s:
                    attempt = 0
                wire, attempt = await self._reconnect(end, attempt)
        except ConnectionLost as final:
            end = final
        finally:
            self._finish(end)

    async def _serve(self, wire: Wire) -> ConnectionLost:
        """Read and write until the connection is lost; says how."""
        try:
            async with asyncio.TaskGroup() as group:
                writer = group.create_task(self._write(wire))
                end = await self._read(wire)
                writer.cancel()
            return end
        finally:
            self._connected = False
            self._idle.set()
            await wire.close()

    async def _reconnect(self, end: ConnectionLost, attempt: int) -> tuple[Wire, int]:
        """Try until a connection stands. Raises `ConnectionLost` if there shall be none."""
        while may_reconnect(end.code):
            delay = self._backoff.delay(attempt)
            if self._come_back_s is not None:
                delay = self._backoff.after(self._come_back_s, attempt)
                self._come_back_s = None
            attempt += 1
            self._events.put(Disconnected(end.code, end.reason, delay))
            await self._backoff.sleep(delay)
            try:
                return await self._connect(), attempt
            except ConnectionLost as lost:
                end = lost
            except OperationError as refusal:
                end = _final(refusal)
                self._come_back_s = refusal.retry_after_s
        raise end

    def _finish(self, end: ConnectionLost) -> None:
        self._calls.finish(end)
        self._events.finish(end)
        self._idle.set()

    # Writing ------------------------------------------------------------------------------------

    def _write_soon(self, item: PendingCall | bytes) -> None:
        self._outgoing.append(item)
        if self._connected:
            self._idle.clear()
        self._output.set()

    async def _write(self, wire: Wire) -> None:
        try:
            while True:
                await self._output.wait()
                self._output.clear()
                await self._write_queued(wire)
                if not self._output.is_set():
                    self._idle.set()
        except ConnectionLost:
            return  # the reader learns of it too, with what the hub had still to say

    async def _write_queued(self, wire: Wire) -> None:
        while self._outgoing:
            item = self._outgoing.popleft()
            if isinstance(item, bytes):
                await wire.send(item)
            elif not item.answer.done():
                await wire.send(item.frame)
        if self._stream.tellable > self._acked:
            self._acked = self._stream.tellable
            await wire.send(b'{"op":"ack","seq":%d}' % self._acked)

    # Reading ------------------------------------------------------------------------------------

    async def _read(self, wire: Wire) -> ConnectionLost:
        try:
            while True:
                frame = decode(await wire.recv())
                if frame is not None:
                    self._take(frame)
        except ConnectionLost as end:
            return end

    def _take(self, frame: HubFrame) -> None:
        match frame:
            case Event():
                self._take_event(frame)
            case Result():
                self._calls.settle(frame.ref, frame.value)
            case ErrorFrame(ref=str(ref)):
                self._calls.settle(ref, refused(frame))
            case Signal():
                self._events.put(frame)
            case Reconnect():
                # The hub closes when it has answered what is in flight; until then we stay.
                self._come_back_s = frame.after_s
            case _:
                pass  # an error about no call comes before a close that says the same

    def _take_event(self, event: Event) -> None:
        verdict = self._stream.receive(event)
        if verdict is Verdict.NEW:
            self._events.put(event)
        elif verdict is Verdict.GAP:
            raise ConnectionLost(
                CloseCode.STATE_LOST, f"event {event.seq} follows {event.prev}, which is not here"
            )
        elif self._stream.tellable > self._acked:
            self._output.set()  # acknowledged on an earlier connection


async def _expect(wire: Wire, kind: type[F]) -> F:
    while True:
        frame = decode(await wire.recv())
        if isinstance(frame, kind):
            return frame
        if isinstance(frame, ErrorFrame):
            raise refused(frame)


def _why(error: OSError) -> str:
    """In the system's words: asyncio's own name the address again and no reason."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def _final(refusal: OperationError) -> ConnectionLost:
    """A refusal at the door as a close: to come back from if temporary, else final."""
    if refusal.temporary:
        return ConnectionLost(CloseCode.INTERNAL, refusal.message)
    return ConnectionLost(_CLOSES.get(refusal.code, CloseCode.BAD_FRAME), refusal.message)
