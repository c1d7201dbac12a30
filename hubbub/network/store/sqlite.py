"""`SqliteStore`: the log in one SQLite file, or in memory for tests.

One connection writes, another reads; each has a thread of its own, and every call is one hop.
Every commit is on the disk when `append` returns (WAL, `synchronous=FULL`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from hubbub.errors import StoreUnavailable, UserError
from hubbub.network.ports import (
    Batch,
    PendingRow,
    Settled,
    StoredEvent,
    StoredTurn,
    StoredWake,
    StoreState,
)
from hubbub.network.store import reads, turns
from hubbub.network.store.connection import StoreConnection, connect, disk_trouble, transaction
from hubbub.network.store.index import index_all
from hubbub.network.store.lock import DatabaseLock
from hubbub.network.store.migrate import migrate
from hubbub.network.store.place import Place
from hubbub.network.store.writer import BatchWriter

__all__ = ["SqliteStore"]

_WRITING = ("synchronous = FULL", "cache_size = -65536", "temp_store = MEMORY")
_READING = ("query_only = ON", "cache_size = -16384", "temp_store = MEMORY")


class SqliteStore:
    """A `Store` (hubbub.network.ports) on SQLite. Not usable before `open` or after `close`."""

    def __init__(self, place: Place):
        self._place = place
        self._lock = DatabaseLock(place.path) if place.path else None
        self._writing: StoreConnection | None = None
        self._reading: StoreConnection | None = None
        self._writer: BatchWriter | None = None

    async def open(self) -> StoreState:
        if self._lock:
            self._lock.acquire()
        try:
            return await self._open()
        except BaseException:
            await self.close()
            raise

    async def _open(self) -> StoreState:
        place = self._place
        self._writing = await connect(place, *_WRITING)
        try:
            self._writer = BatchWriter(await self._writing.run(_prepare, place.database))
            # A database in memory belongs to its connection: that one reads too, between batches.
            if place.path:
                self._reading = await connect(place, *_READING)
            return await self._reader().run(reads.state)
        except (StoreUnavailable, sqlite3.DatabaseError) as error:
            raise UserError(_unusable(place, error)) from error

    async def close(self) -> None:
        reading, self._reading = self._reading, None
        writing, self._writing = self._writing, None
        try:
            if reading:
                await reading.close()
            if writing:
                await writing.close()  # the last connection to close moves the WAL into the file
        finally:
            if self._lock:
                self._lock.release()

    async def append(self, batch: Batch) -> None:
        if self._writing is None or self._writer is None:
            raise StoreUnavailable("the store is closed")
        await self._writing.run(self._writer.write, batch)

    def _reader(self) -> StoreConnection:
        reader = self._reading or self._writing
        if reader is None:
            raise StoreUnavailable("the store is closed")
        return reader

    async def events(
        self, participant: str, after: int, upto: int, limit: int, own: bool
    ) -> Sequence[StoredEvent]:
        return await self._reader().run(reads.events, participant, after, upto, limit, own)

    async def log(self, after: int, upto: int, limit: int) -> Sequence[StoredEvent]:
        return await self._reader().run(reads.log, after, upto, limit)

    async def tails(
        self, threads: Sequence[int], upto: int, limit: int
    ) -> Mapping[int, Sequence[bytes]]:
        return await self._reader().run(reads.tails, threads, upto, limit)

    async def thread_page(self, thread: int, before: int | None, limit: int) -> Sequence[bytes]:
        return await self._reader().run(reads.thread_page, thread, before, limit)

    async def message(self, seq: int) -> bytes | None:
        return await self._reader().run(reads.message, seq)

    async def was_member(self, participant: str, scope: int, seq: int) -> bool:
        return await self._reader().run(reads.was_member, participant, scope, seq)

    async def settled(self, sender: str, cid: str) -> Settled | None:
        return await self._reader().run(reads.settled, sender, cid)

    async def pending(self, agent: str, upto: int) -> Sequence[PendingRow]:
        return await self._reader().run(reads.pending, agent, upto)

    async def wake(self, participant: str, seq: int) -> StoredWake | None:
        return await self._reader().run(reads.wake, participant, seq)

    async def turn(self, turn: str) -> StoredTurn | None:
        return await self._reader().run(turns.turn, turn)

    async def turns(self, agent: str | None, limit: int) -> Sequence[StoredTurn]:
        return await self._reader().run(turns.turns, agent, limit)

    async def token_hashes(self, participant: str) -> Sequence[str]:
        return await self._reader().run(reads.token_hashes, participant)


def _prepare(db: sqlite3.Connection, name: str) -> int:
    """Make the database ready to write to; returns the end of the log, and of its indexes."""
    migrate(db, name)
    db.execute("PRAGMA journal_mode = WAL").fetchone()
    db.execute("PRAGMA wal_autocheckpoint = 1000")
    with transaction(db):
        return index_all(db)


def _unusable(place: Place, error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, StoreUnavailable) else error
    if isinstance(cause, sqlite3.DatabaseError) and disk_trouble(cause):
        code = cause.sqlite_errorcode & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            return f"{place.database} is not a database: name another file as the store"
        if code == sqlite3.SQLITE_CORRUPT:
            return (
                f"{place.database} is damaged ({cause}): put back a copy of it, "
                "or name another file as the store"
            )
    return f"{place.database} cannot be used as a store: {cause}"
