"""What arrives for a client's consumer, waiting in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from hubbub.errors import ConnectionLost
from hubbub.protocol.frames import Event, Ready, Signal

__all__ = ["MOST_SIGNALS", "Disconnected", "Events", "Incoming"]

MOST_SIGNALS = 256
"""Signals that wait for a slow consumer; beyond, the oldest are dropped."""


@dataclass(frozen=True)
class Disconnected:
    """The connection is lost for now; the client tries again after `retry_in_s` seconds."""

    code: int
    """The close code; 1006 when there was none."""
    reason: str
    retry_in_s: float


Incoming = Ready | Event | Signal | Disconnected
"""What `Client.events` hands out."""


class Events:
    """The iterator that `Client.events` gives, and the queue behind it.

    No generator: one who leaves a loop over it half-way may start another at once. The number of
    waiting events is bounded by the hub (256 without an acknowledgement), that of signals here.
    """

    def __init__(self, hand_out: Callable[[int], None]) -> None:
        """`hand_out` is called with the `seq` of each event that the consumer takes."""
        self._hand_out = hand_out
        self._items: deque[Incoming] = deque()
        self._signals = 0
        self._news = asyncio.Event()
        self._awaited = False
        self._end: ConnectionLost | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        if self._awaited:
            raise RuntimeError("events() has a consumer already")
        self._awaited = True
        try:
            while not self._items:
                if self._end is not None:
                    raise ConnectionLost(self._end.code, self._end.reason)
                self._news.clear()
                await self._news.wait()
        finally:
            self._awaited = False
        return self._pop()

    async def aclose(self) -> None:
        """There is nothing to close; for those who hold it as they would a generator."""

    def put(self, item: Incoming) -> None:
        """Something arrived."""
        if isinstance(item, Signal):
            self._make_room()
            self._signals += 1
        elif isinstance(item, Disconnected) and self._items:
            if isinstance(self._items[-1], Disconnected):
                self._items.pop()  # only the latest attempt matters to one who was not looking
        elif isinstance(item, Ready) and not item.resumed:
            self._items.clear()  # they belong to a state that is to be forgotten
            self._signals = 0
        self._items.append(item)
        self._news.set()

    def finish(self, end: ConnectionLost) -> None:
        """Nothing follows what is waiting."""
        self._end = end
        self._news.set()

    def _make_room(self) -> None:
        if self._signals >= MOST_SIGNALS:
            self._items.remove(next(item for item in self._items if isinstance(item, Signal)))
            self._signals -= 1

    def _pop(self) -> Incoming:
        item = self._items.popleft()
        if isinstance(item, Event):
            self._hand_out(item.seq)
        elif isinstance(item, Signal):
            self._signals -= 1
        return item
