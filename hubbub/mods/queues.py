"""Queues before whatever has a key: one change of each at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial

from hubbub.mods.operation import Commit

__all__ = ["KeyedQueues"]


class _Queue:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.people = 0
        """How many are in it, the one at its head included."""


class KeyedQueues:
    """A queue for each thing that is being changed; nothing is kept of the others."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue] = {}

    def __len__(self) -> int:
        return len(self._queues)

    async def in_turn(self, key: Hashable, change: Callable[[], Awaitable[Commit]]) -> Commit:
        """What the change keeps; until that is durable nothing else changes what has this key."""
        await self.enter(key)
        try:
            commit = await change()
        except BaseException:
            self.leave(key)
            raise
        commit.released = partial(self.leave, key)
        return commit

    async def enter(self, key: Hashable) -> None:
        """Wait for one's turn, which lasts until `leave`."""
        queue = self._queues.setdefault(key, _Queue())
        queue.people += 1
        try:
            await queue.lock.acquire()
        except asyncio.CancelledError:
            self._left(key, queue)
            raise

    def leave(self, key: Hashable) -> None:
        """The next one's turn."""
        queue = self._queues[key]
        queue.lock.release()
        self._left(key, queue)

    def _left(self, key: Hashable, queue: _Queue) -> None:
        queue.people -= 1
        if not queue.people:
            del self._queues[key]
