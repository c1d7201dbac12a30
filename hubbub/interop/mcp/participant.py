"""A participant driven by an MCP host: incoming messages are queued until the host asks for them.

Messages are delivered in log order, and again until acknowledged, so a host that crashes in the
middle of its work gets them again. An answer without an explicit target refers to the last message
delivered in its thread, or else to the last one that wants an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.agents.tools.base import CallSite
from hubbub.agents.tools.hub import compact_result
from hubbub.client import Client
from hubbub.errors import ConnectionLost
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Event, Ready
from hubbub.waiting import cancel

__all__ = ["McpParticipant", "WaitResult"]

MAX_BATCH = 50
"""Messages delivered at once."""
MAX_THREADS = 1000
"""Threads whose last delivered message is remembered."""
PROGRESS_S = 10.0
"""Seconds between progress reports while there are no messages."""


@dataclass(frozen=True, slots=True)
class WaitResult:
    """A batch of messages."""

    messages: tuple[JsonValue, ...]
    cursor: int
    """Pass it to the next wait, or to `ack`, once these are handled."""
    more: bool


class _HostSite(CallSite):
    """The site of a host's call. It is in no step of a turn, so no cid can be derived from it."""

    @property
    def cid(self) -> str:
        return ""


class McpParticipant:
    """A host's participant. It is the `HubCaller` of its tools."""

    def __init__(self, client: Client):
        self.client = client
        self._waiting: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._lost: ConnectionLost | None = None
        self._last_delivered: dict[str, str] = {}  # by thread
        self._last_wake: Event | None = None

    @property
    def name(self) -> str:
        return self.client.participant

    @property
    def is_lost(self) -> bool:
        """Whether the hub closed the connection for good."""
        return self._lost is not None

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """A context in which messages are received."""
        task = asyncio.create_task(self._listen())
        try:
            yield
        finally:
            await cancel(task)

    async def _listen(self) -> None:
        try:
            async for item in self.client.events():
                match item:
                    case Event():
                        self._waiting.append(item)
                        self._arrived.set()
                    case Ready(resumed=False):
                        self._waiting.clear()
        except ConnectionLost as exc:
            self._lost = exc
            self._arrived.set()

    def waiting(self) -> Sequence[JsonValue]:
        """The queued messages, without delivering them."""
        return [self._presented(event) for event in list(self._waiting)[:MAX_BATCH]]

    # Receiving ----------------------------------------------------------------------------------

    async def wait(
        self,
        cursor: int | None,
        timeout_s: float,
        progress: Callable[[float], Awaitable[None]],
    ) -> WaitResult:
        """Acknowledge messages up to `cursor`, then wait up to `timeout_s` seconds for more.

        `progress` is awaited every `PROGRESS_S` seconds with the seconds elapsed. Raises
        `ConnectionLost` when the hub closed the connection for good.
        """
        if cursor is not None:
            await self.ack(cursor)
        loop = asyncio.get_running_loop()
        started, elapsed = loop.time(), 0.0
        while not self._waiting and elapsed < timeout_s:
            if self._lost is not None:
                raise self._lost
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(PROGRESS_S, timeout_s - elapsed)):
                    await self._arrived.wait()
            elapsed = loop.time() - started
            if not self._waiting:
                await progress(elapsed)
        batch = list(self._waiting)[:MAX_BATCH]
        for event in batch:
            self._delivered(event)
        last = batch[-1].seq if batch else cursor or 0
        messages = tuple(self._presented(event) for event in batch)
        return WaitResult(messages, last, more=len(self._waiting) > len(batch))

    def _delivered(self, event: Event) -> None:
        if event.wake is not None:
            self._last_wake = event
        thread = event.message.thread_id
        self._last_delivered.pop(thread, None)  # keep the least recent first
        self._last_delivered[thread] = event.message.id
        if len(self._last_delivered) > MAX_THREADS:
            del self._last_delivered[next(iter(self._last_delivered))]

    def _presented(self, event: Event) -> JsonValue:
        value = compact_result(event.message.model_dump(mode="json", exclude_none=True), self.name)
        if isinstance(value, dict) and event.wake is not None:
            value["reply"] = event.wake.reply
        return value

    async def ack(self, cursor: int) -> None:
        """Acknowledge messages up to `cursor`: no process gets them again."""
        while self._waiting and self._waiting[0].seq <= cursor:
            self._waiting.popleft()
        await self.client.ack(cursor)

    # Acting -------------------------------------------------------------------------------------

    def site(self, arguments: Mapping[str, JsonValue]) -> CallSite:
        """The thread of a call and the message that it answers."""
        last = self._last_wake.message if self._last_wake is not None else None
        thread = self._thread(arguments) or (last.thread_id if last is not None else "")
        named = arguments.get("message_id")
        cause = named if isinstance(named, str) else self._last_delivered.get(thread)
        return _HostSite(cause or (last.id if last is not None else ""), 0, 0, thread)

    def _thread(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """The canonical id of the thread that a call names."""
        channel, to = arguments.get("channel"), arguments.get("to")
        if isinstance(channel, str):
            return thread_ids.channel(channel)
        if not isinstance(to, str):
            return None
        direct = thread_ids.is_participant_id(to) and to != self.name
        return thread_ids.direct([self.name, to]) if direct else thread_ids.canonical(to, self.name)

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue:
        """Call an operation as the participant; `cid` is ignored. Raises `OperationError`."""
        if self._lost is not None:
            raise self._lost
        if cause:
            args["cause"] = cause
        return await self.client.call(name, cid=None, **args)
