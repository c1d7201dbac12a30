"""Queues before whatever has a key: one change of each at a time."""

from __future__ import annotations

from asyncio import Lock
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager

from hubbub.mods.operation import Commit

__all__ = ["KeyedQueues"]


class KeyedQueues:
    """A queue for each thing that is being changed; nothing is kept of the others."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, Lock] = {}
        self._people = Counter[Hashable]()
        """How many are in a queue, the one at its head included."""

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[Callable[[Commit], Commit]]:
        """Wait for one's turn with what has this key. It lasts until the end of the block; with a
        commit that was handed to the function that it gives, until that is durable or refused."""
        lock = self._locks.setdefault(key, Lock())
        self._people[key] += 1
        handed = False

        def until(commit: Commit) -> Commit:
            nonlocal handed
            handed, commit.released = True, leave
            return commit

        def leave() -> None:
            if held:
                lock.release()
            self._people[key] -= 1
            if not self._people[key]:
                del self._people[key], self._locks[key]

        held = False
        try:
            held = await lock.acquire()
            yield until
        finally:
            if not handed:
                leave()
