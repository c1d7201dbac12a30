"""One participant whose other end is an MCP host: what it hears waits until it asks.

Messages are handed out in the order of the log, and again until they are acknowledged: a host that
ends in the middle of its work is given them anew. Who answers names what it answers by itself: the
last message that was handed out and wants an answer, or that was in the thread it speaks in.
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

__all__ = ["McpParticipant", "WaitResult"]

MOST = 50
"""Messages that are handed out at once."""
MOST_THREADS = 1000
"""Threads of which the message that an answer there answers is remembered."""
PROGRESS_S = 10.0
"""Between two signs of life while nothing comes."""


@dataclass(frozen=True, slots=True)
class WaitResult:
    """What came of waiting."""

    messages: tuple[JsonValue, ...]
    cursor: int
    """To be given with the next wait, or with `ack`, when these are dealt with."""
    more: bool


class _HostSite(CallSite):
    """Where a host's call stands: in no step of a turn, of which an id could be made."""

    @property
    def cid(self) -> str:
        return ""


class McpParticipant:
    """What a host may do as a participant. `HubCaller` of its own tools."""

    def __init__(self, client: Client):
        self._client = client
        self._waiting: deque[Event] = deque()
        self._news = asyncio.Event()
        self._lost: ConnectionLost | None = None
        self._answers: dict[str, str] = {}  # by thread, the message that an answer there answers
        self._last: Event | None = None

    @property
    def name(self) -> str:
        return self._client.participant

    @property
    def gone(self) -> bool:
        """Whether the hub has closed for good."""
        return self._lost is not None

    @property
    def network(self) -> str:
        return self._client.network

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Within, it hears."""
        task = asyncio.create_task(self._listen())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _listen(self) -> None:
        try:
            async for item in self._client.events():
                match item:
                    case Event():
                        self._waiting.append(item)
                        self._news.set()
                    case Ready(resumed=False):
                        self._waiting.clear()
        except ConnectionLost as exc:
            self._lost = exc
            self._news.set()

    @property
    def ready(self) -> Ready:
        """The latest `ready`."""
        return self._client.ready

    def waiting(self) -> Sequence[JsonValue]:
        """What waits to be dealt with, without being handed out."""
        return [self._told(event) for event in list(self._waiting)[:MOST]]

    # Hearing ------------------------------------------------------------------------------------

    async def wait(
        self,
        cursor: int | None,
        timeout_s: float,
        progress: Callable[[float], Awaitable[None]],
    ) -> WaitResult:
        """What has come since `cursor`, which is dealt with; at least something, if it comes within
        `timeout_s` seconds. `progress` is awaited now and then, with the seconds that have passed.

        Raises `ConnectionLost` when the hub has closed for good.
        """
        if cursor is not None:
            await self.ack(cursor)
        loop = asyncio.get_running_loop()
        began, passed = loop.time(), 0.0
        while not self._waiting and passed < timeout_s:
            if self._lost is not None:
                raise self._lost
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(PROGRESS_S, timeout_s - passed)):
                    await self._news.wait()
            passed = loop.time() - began
            if not self._waiting:
                await progress(passed)
        taken = list(self._waiting)[:MOST]
        for event in taken:
            self._handed_out(event)
        last = taken[-1].seq if taken else cursor or 0
        told = tuple(self._told(event) for event in taken)
        return WaitResult(told, last, more=len(self._waiting) > len(taken))

    def _handed_out(self, event: Event) -> None:
        if event.wake is not None:
            self._last = event
        thread = event.message.thread_id
        self._answers.pop(thread, None)  # those that were heard of last come last
        self._answers[thread] = event.message.id
        if len(self._answers) > MOST_THREADS:
            del self._answers[next(iter(self._answers))]

    def _told(self, event: Event) -> JsonValue:
        told = compact_result(event.message.model_dump(mode="json", exclude_none=True), self.name)
        if isinstance(told, dict) and event.wake is not None:
            told["reply"] = event.wake.reply
        return told

    async def ack(self, cursor: int) -> None:
        """All up to `cursor` is dealt with: it is not handed out again, in no process."""
        while self._waiting and self._waiting[0].seq <= cursor:
            self._waiting.popleft()
        await self._client.ack(cursor)

    # Acting -------------------------------------------------------------------------------------

    def site(self, arguments: Mapping[str, JsonValue]) -> CallSite:
        """Where a call stands: in which thread, and what it answers, if it says something."""
        last = self._last.message if self._last is not None else None
        thread = self._thread(arguments) or (last.thread_id if last is not None else "")
        named = arguments.get("message_id")
        cause = named if isinstance(named, str) else self._answers.get(thread)
        return _HostSite(cause or (last.id if last is not None else ""), 0, 0, thread)

    def _thread(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """The thread that a call names, canonically."""
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
        """Call an operation, in the participant's own name. Raises `OperationError`. `cid` is that
        of a site, which has none.
        """
        if self._lost is not None:
            raise self._lost
        if cause:
            args["cause"] = cause
        return await self._client.call(name, cid=None, **args)
