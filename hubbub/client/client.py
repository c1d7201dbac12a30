"""A participant's end of the protocol: calls that survive lost connections, events without gaps.

    async with Client(WebSocketTransport("ws://127.0.0.1:4820"), "ann", "human") as client:
        await client.call("send_text_message", to="bob", text="hello")
        async for item in client.events():
            match item:
                case Event():
                    print(item.message.text)
                    await client.ack(item.seq)

Delivery at least once, `cid` on writes, and acknowledgement after the effect make effects happen
exactly once: a client hands out an event once, and only a new client that starts from an earlier
cursor gets it again.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Self, TypeVar

from pydantic import JsonValue

from hubbub.client.calls import Backoff, PendingCall, PendingCalls, encode
from hubbub.client.items import Disconnected, Events
from hubbub.client.snapshot import checked_token, complete, decode, refused
from hubbub.client.stream import Stream, Verdict
from hubbub.client.transport import ABNORMAL, Transport, Wire
from hubbub.clock import Clock, SystemClock
from hubbub.errors import ConnectionLost, OperationError, UserError
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
from hubbub.protocol.thread_ids import is_id
from hubbub.waiting import done_within

__all__ = ["Client", "ClientOptions"]

HANDSHAKE_S = 10.0
"""Seconds for connecting, `hello` and `ready` together."""
WRITE_BYTES = 64 * 1024
"""Bytes from which on frames are not written together."""
FLUSH_S = 1.0
"""Seconds that closing waits for pending writes."""
_CLOSES: dict[str, CloseCode] = {
    ErrorCode.AUTH_FAILED: CloseCode.AUTH,
    ErrorCode.UNSUPPORTED_VERSION: CloseCode.VERSION,
}


F = TypeVar("F", Hello, Ready)


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Rarely used options of a client."""

    card: Card | None = None
    """The participant's card for others; None keeps the one at the hub."""
    observe: bool = False
    """Receive every message of the network. For owners."""
    schemas: bool = True
    """Whether operations include the JSON Schemas of their inputs, which only tools need."""
    backoff: Backoff = field(default_factory=Backoff)
    clock: Clock = field(default_factory=SystemClock)


class Client:
    """One participant on one connection at a time, while its `async with` block lasts.

    Entering connects, and raises `OperationError` if the hub refuses (`auth_failed`,
    `unsupported_version`, ...) and `ConnectionLost` if there is no hub. After that the client
    reconnects automatically unless the close code forbids it. Leaving writes everything posted (for
    at most a second), closes, and ends every task.

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
        token: str | Callable[[], str | None] | None = None,
        turns: bool = False,
        cursor: Cursor | Literal["latest"] | None = None,
        options: ClientOptions | None = None,
    ):
        """`token`: a function is called at each connection, for tokens that change when the hub
        restarts. `turns`: whether it is an agent that records its turns. `cursor` is where an
        earlier client stopped, or `latest` (the head of the log); the default is the hub's own
        cursor.

        Raises `UserError` for a name that no participant can have, and `OperationError` for a token
        that is none.
        """
        if not is_id(participant):
            raise UserError(
                f"{participant!r} cannot be a name: use 1 to 64 letters (a-z), digits, - and _"
            )
        options = options or ClientOptions()
        self._schemas = options.schemas
        self.participant = participant
        self._transport = transport
        fixed = None if callable(token) else checked_token(token)
        self._token = token if callable(token) else lambda: fixed
        self._identity = Identify(
            version=VERSION,
            participant=participant,
            kind=kind,
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
        self._over_rate = asyncio.Lock()
        """Held by the one call over the rate limit that is being retried."""
        self._runner: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop in which it was entered; None: it was not."""

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise UserError("a client can be entered only once: make another `Client`")
        wire = await self._connect()
        self._loop = asyncio.get_running_loop()
        self._runner = asyncio.create_task(self._run(wire), name=f"hubbub {self.participant}")
        return self

    async def __aexit__(self, *exc: object) -> None:
        runner = self._runner
        assert runner is not None, "entered before"
        try:
            # If it is not idle by then, the hub does not read, and the rest cannot be written.
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
        """The last acknowledged position, from which a later client can start."""
        return self._stream.cursor

    def offers(self, name: str) -> bool:
        """Whether the hub has an operation, which an older one may not."""
        return name in self._offered

    # Calls --------------------------------------------------------------------------------------

    async def call(self, name: str, /, *, cid: str | None = None, **args: object) -> JsonValue:
        """Call an operation and wait for its result.

        The arguments are JSON or pydantic models. Writes get a new `cid` unless one is given. After
        a lost connection the call is sent again with the same `cid`. Temporary errors
        (`rate_limited`, `store_unavailable`, `draining`) are retried up to `Backoff.retries` times,
        with the delay that the hub requests or an increasing one; those over the rate limit one by
        one.

        Raises `OperationError` if the hub refuses or would certainly refuse (arguments that are not
        JSON, or too large), `ConnectionLost` if the client is closed for good, and `UserError`
        before the client is entered and in another event loop.
        """
        cid = cid or self._fresh_cid(name)
        attempt, has_turn = 0, False
        try:
            while True:
                try:
                    return await self.post(name, cid=cid, **args)
                except OperationError as exc:
                    if not exc.temporary or attempt >= self._backoff.retries:
                        raise
                    refusal = exc
                await self._backoff.sleep(self._backoff.after(refusal.retry_after_s or 0, attempt))
                attempt += 1
                # Hundreds of calls that retry at once would exceed the limit again.
                if refusal.code == ErrorCode.RATE_LIMITED and not has_turn:
                    has_turn = await self._over_rate.acquire()
        finally:
            if has_turn:
                self._over_rate.release()

    def post(
        self, name: str, /, *, cid: str | None = None, **args: object
    ) -> asyncio.Future[JsonValue]:
        """Call an operation without waiting. Frames are sent in the order of the calls.

        As `call`, but temporary errors are not retried, as that would change the order. The future
        can be dropped; its exception is then ignored.
        """
        self._check_loop()
        call = self._calls.make(name, args, cid or self._fresh_cid(name), self.hello.limits)
        if not call.answer.done():
            self._write_soon(call)
        return call.answer

    def _check_loop(self) -> None:
        """Raises `UserError` where answers and events would never arrive."""
        if self._loop is None:
            raise UserError("the client is not connected: use `async with client:`")
        if self._loop is not asyncio.get_running_loop():
            raise UserError(
                "the client runs in the event loop of another thread: from here, call "
                "`asyncio.run_coroutine_threadsafe` with a coroutine of yours and that loop"
            )

    def _fresh_cid(self, name: str) -> str | None:
        return None if name in self._reads else new_ulid()

    # Events -------------------------------------------------------------------------------------

    def events(self) -> Events:
        """The incoming items, in order, for one consumer.

        Begins with `Ready`, and yields another one after every reconnection. With `resumed=True`
        the stream continues. With `resumed=False` discard your state and start over from it (queued
        events of the old state are dropped). An event is yielded once, and never after a gap. Your
        own messages arrive as events only if another connection sent them, or if the connection was
        lost around that time.

        Ends by raising `ConnectionLost` when the hub closes for good or the client is closed. A
        consumer can stop and continue later; two at the same time raise RuntimeError. Raises
        `UserError` as `call` does.
        """
        self._check_loop()
        return self._events

    async def ack(self, seq: int) -> None:
        """Acknowledge that everything up to `seq` and its effects are safe with this participant.

        Cheap: the position to resume from is stored, and sent to the hub together with others of
        the same moment. The hub sends at most 256 unacknowledged events. A position that was not
        handed out belongs to an older stream and is ignored.
        """
        if self._stream.ack(seq):
            self._idle.clear()
            self._output.set()

    async def written(self) -> None:
        """Wait until all calls and acknowledgements so far are sent, or the connection is lost.

        Raises `UserError` as `call` does.
        """
        self._check_loop()
        await self._idle.wait()

    async def signal(self, type: str, thread_id: str | None = None, data: JsonValue = None) -> None:
        """Send an ephemeral signal (typing, activity). Dropped while there is no connection.

        Raises `OperationError` if it is not JSON or too large, and `UserError` as `call` does.
        """
        self._check_loop()
        place = {} if thread_id is None else {"thread_id": thread_id}
        more = {} if data is None else {"data": data}
        frame = {"op": "signal", "type": type, **place, **more}
        encoded = encode(f"signal {type}", frame, self.hello.limits)
        if self._connected:
            self._write_soon(encoded)

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
                f"the hub supports {', '.join(hello.versions)}, this client {VERSION}",
            )
        update = {"cursor": self._stream.resume, "token": checked_token(self._token())}
        identify = self._identity.model_copy(update=update)
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
        """Serve one connection after another, until the client ends."""
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
        """Read and write until the connection is lost; returns how it ended."""
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
        """Retry until there is a connection. Raises `ConnectionLost` if reconnecting is not
        allowed."""
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
            return  # the reader gets the same error, after the hub's last frames

    async def _write_queued(self, wire: Wire) -> None:
        while frames := self._next_frames():
            await wire.send(*frames)

    def _next_frames(self) -> list[bytes]:
        """The frames to write now: those queued, up to `WRITE_BYTES`, and an acknowledgement."""
        frames, size = list[bytes](), 0
        while self._outgoing and size < WRITE_BYTES:
            item = self._outgoing.popleft()
            if isinstance(item, PendingCall):
                if item.answer.done():
                    continue
                item = item.frame
            frames.append(item)
            size += len(item)
        if not self._outgoing and self._stream.tellable > self._acked:
            self._acked = self._stream.tellable
            frames.append(b'{"op":"ack","seq":%d}' % self._acked)
        return frames

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
                # The hub closes after answering calls in flight; stay until then.
                self._come_back_s = frame.after_s
            case _:
                pass  # an error without a call precedes a close with the same reason

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
    """The system's message, as asyncio's repeats the address without a reason."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def _final(refusal: OperationError) -> ConnectionLost:
    """A refused `identify` as a close: retryable if temporary, otherwise final."""
    if refusal.temporary:
        return ConnectionLost(CloseCode.INTERNAL, refusal.message)
    return ConnectionLost(_CLOSES.get(refusal.code, CloseCode.BAD_FRAME), refusal.message)
