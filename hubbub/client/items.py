"""The queue of items for a client's consumer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from hubbub.errors import ConnectionLost
from hubbub.logs import get_logger
from hubbub.protocol.frames import Event, Ready, Signal

log = get_logger(__name__)

__all__ = ["MAX_SIGNALS", "ConnectionLog", "Disconnected", "Events", "Incoming"]

MAX_SIGNALS = 256
"""Signals queued for a slow consumer; beyond that the oldest are dropped."""


@dataclass(frozen=True)
class Disconnected:
    """The connection is lost; the client reconnects after `retry_in_s` seconds."""

    code: int
    """The close code; 1006 if there was none."""
    reason: str
    retry_in_s: float


Incoming = Ready | Event | Signal | Disconnected
"""The items of `Client.events`."""


class ConnectionLog:
    """Logs that the connection is lost, once, and that it is back."""

    def __init__(self, participant: str):
        self._participant, self._is_lost = participant, False

    def note(self, item: Incoming) -> None:
        """Note an item of `Client.events`."""
        if isinstance(item, Disconnected) and not self._is_lost:
            self._is_lost = True
            reason = item.reason or f"closed with {item.code}"
            log.warning("connection lost, reconnecting", name=self._participant, reason=reason)
        elif isinstance(item, Ready) and self._is_lost:
            self._is_lost = False
            log.warning("connected again", name=self._participant)


class Events:
    """The iterator of `Client.events`, and the queue behind it.

    Not a generator, so that a consumer can leave a loop and start another. The hub limits the
    number of queued events (256 without an acknowledgement); the number of signals is limited here.
    """

    def __init__(self, hand_out: Callable[[int], None]) -> None:
        """`hand_out` is called with the `seq` of each event that the consumer takes."""
        self._hand_out = hand_out
        self._items: deque[Incoming] = deque()
        self._signals = 0
        self._changed = asyncio.Event()
        self._awaited = False
        self._end: ConnectionLost | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        if self._awaited:
            raise RuntimeError("events() already has a consumer")
        self._awaited = True
        try:
            while not self._items:
                if self._end is not None:
                    raise ConnectionLost(self._end.code, self._end.reason)
                self._changed.clear()
                await self._changed.wait()
        finally:
            self._awaited = False
        return self._pop()

    async def aclose(self) -> None:
        """Nothing to close; for use in place of a generator."""

    def put(self, item: Incoming) -> None:
        """Queue an item."""
        if isinstance(item, Signal):
            self._make_room()
            self._signals += 1
        elif isinstance(item, Disconnected) and self._items:
            if isinstance(self._items[-1], Disconnected):
                self._items.pop()  # only the latest attempt matters
        elif isinstance(item, Ready) and not item.resumed:
            self._items.clear()  # they belong to the old state
            self._signals = 0
        self._items.append(item)
        self._changed.set()

    def finish(self, end: ConnectionLost) -> None:
        """End the iterator after the queued items."""
        self._end = end
        self._changed.set()

    def _make_room(self) -> None:
        if self._signals >= MAX_SIGNALS:
            self._items.remove(next(item for item in self._items if isinstance(item, Signal)))
            self._signals -= 1

    def _pop(self) -> Incoming:
        item = self._items.popleft()
        if isinstance(item, Event):
            self._hand_out(item.seq)
        elif isinstance(item, Signal):
            self._signals -= 1
        return item
