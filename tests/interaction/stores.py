"""A real store that fails or waits on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hubbub.errors import StoreUnavailable
from hubbub.network.records import Batch
from hubbub.network.store import SqliteStore
from hubbub.network.store.connection import DatabaseConnection
from hubbub.network.store.location import parse_url
from tests.interaction.peers import soon

__all__ = ["MoodyStore"]


class MoodyStore(SqliteStore):
    """SQLite that fails or waits on demand.

    failing    how many of the next commits fail, as with a full disk
    deaf       reads fail while it is set
    gate       commits wait until it is set
    reads      reads wait until it is set
    waiting    set when a commit or a read reaches a closed gate
    batches    the committed batches
    asked      the number of reads
    until      waits for a condition on these
    """

    def __init__(self, url: str = "sqlite::memory:"):
        super().__init__(parse_url(url))
        self.failing, self.deaf, self.asked = 0, False, 0
        self.gate, self.reads, self.waiting = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.gate.set()
        self.reads.set()
        self.batches: list[Batch] = []
        self.changed = asyncio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns once the condition, on the numbers above, holds."""
        async with soon():
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def until_waiting(self) -> None:
        """Returns once a commit or a read waits at a closed gate."""
        async with soon():
            await self.waiting.wait()

    async def hold_second_commit(self) -> None:
        """Let the commit at the closed gate pass, and wait until another one is there."""
        await self.until_waiting()
        self.waiting.clear()
        self.gate.set()
        self.gate.clear()
        await self.until_waiting()

    async def append(self, batch: Batch) -> None:
        if not self.gate.is_set():
            self.waiting.set()
            await self.gate.wait()
        if self.failing > 0:
            self.failing -= 1
            self.changed.set()
            raise StoreUnavailable("the disk is full")
        await super().append(batch)
        self.batches.append(batch)
        self.changed.set()

    @property
    def reading(self) -> DatabaseConnection:
        return _Reading(self, super().reading)


class _Reading:
    """The connection for reads, which obeys its store."""

    def __init__(self, store: MoodyStore, connection: DatabaseConnection):
        self._store, self._connection = store, connection

    async def run(self, function: Callable[..., Any], *args: Any, **kw: Any) -> Any:
        store = self._store
        store.asked += 1
        store.changed.set()
        if not store.reads.is_set():
            store.waiting.set()
            await store.reads.wait()
        if store.deaf:
            raise StoreUnavailable("the disk does not answer")
        return await self._connection.run(function, *args, **kw)

    async def close(self) -> None:
        await self._connection.close()
