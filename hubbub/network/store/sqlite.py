"""`SqliteStore`: the log in one SQLite file, or in memory for tests.

One connection writes, another reads; each has its own thread for a file, and every call is one hop.
Every commit is on the disk when `append` returns (WAL, `synchronous=FULL`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import astuple

from hubbub.errors import LogDamaged, StoreUnavailable
from hubbub.ids import new_ulid
from hubbub.network import queries
from hubbub.network.queries import Query
from hubbub.network.records import Batch
from hubbub.network.store import control, events, mods, reads, searches
from hubbub.network.store.checksums import check_end, is_page_destroyed, unreadable_notice
from hubbub.network.store.connection import Connect, DatabaseConnection, connect, explained
from hubbub.network.store.database import Database, transaction
from hubbub.network.store.index import index_all
from hubbub.network.store.location import SqliteLocation
from hubbub.network.store.lock import DatabaseLock
from hubbub.network.store.migrate import migrate
from hubbub.network.store.writer import TAIL, BatchWriter
from hubbub.network.stored import StoredEvent, StoreState

__all__ = ["RUNS", "SqliteStore", "answer"]

T = TypeVar("T")

# The function for each query. Any, as each is called with the fields of its query, in order.
_ANSWERS: Mapping[type[Query[Any]], Callable[..., Any]] = {
    queries.IsMember: reads.was_member,
    queries.MembersAt: reads.members_at,
    queries.MentionsOf: searches.mentions,
    queries.InteractionMessages: searches.interaction,
    queries.SettledCall: reads.settled,
    queries.PendingWakes: reads.pending,
    queries.OpenWakes: reads.open_wakes,
    queries.WakeOf: reads.wake,
    queries.WakesAt: reads.wakes,
    queries.TurnById: reads.turn,
    queries.LatestTurns: reads.turns,
    queries.TurnsById: reads.turns_called,
    queries.PromptsOf: reads.prompts,
    queries.MissingParts: reads.missing_parts,
    queries.AccountOf: control.ledger,
    queries.SpendingSince: control.spending,
    queries.SpentInTurnsSince: control.spent_in_turns,
    queries.ApprovalById: control.approval,
    queries.LatestApprovals: control.approvals,
    queries.RequestAt: control.request,
    queries.LatestRequests: control.requests,
    queries.MemoryValue: reads.memory,
    queries.MemoriesOf: reads.memories,
    queries.TokenHashes: reads.token_hashes,
    queries.TokenOwner: reads.token_owner,
    queries.TokensByParticipant: reads.token_counts,
    queries.ModsWithTables: mods.with_tables,
    queries.ModSelect: mods.mod_rows,
}


def answer(db: Database, query: Query[T]) -> T:
    """The answer to a query, read in the thread of `db`."""
    result: T = _ANSWERS[type(query)](db, *astuple(query))
    return result


# Small caches (KiB): the log grows at its end, the system caches the file, and a hub's memory is
# level after minutes instead of hours.
_WRITING = ("synchronous = FULL", "cache_size = -8192", "temp_store = MEMORY")
_READING = ("query_only = ON", "cache_size = -4096", "temp_store = MEMORY")

RUNS = 10_000
"""Runs that are remembered: a client that comes back from an older one starts afresh."""

MOST_LOCATED = 100_000
"""Messages among which an unreadable one is searched: about a second."""


class SqliteStore:
    """A `Store` (hubbub.network.ports) on SQLite; `open` it first, `close` it at the end.

    `tail` is how many messages its indexes may lag behind the log, `connect` what opens its
    connections: the simulation has a disk of its own.
    """

    def __init__(self, place: SqliteLocation, tail: int = TAIL, connect: Connect = connect):
        self._place, self._connect = place, connect
        self._lock = DatabaseLock(place.path) if place.path else None
        self._writing: DatabaseConnection | None = None
        self._reading: DatabaseConnection | None = None
        self._writer = BatchWriter(tail)

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
        with explained(place):
            self._writing = await self._connect(place, *_WRITING)
            self._writer.start(await self._writing.run(_prepare, str(place)))
            # A database in memory belongs to its connection: that one reads too, between batches.
            if place.path:
                self._reading = await self._connect(place, *_READING)
            if self._lock:
                self._lock.watch()
            return await self.reading.run(reads.state)

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

    @property
    def writing(self) -> DatabaseConnection:
        """The connection that writes; `StoreUnavailable` while the store is closed."""
        if self._writing is None:
            raise StoreUnavailable("the store is closed")
        return self._writing

    @property
    def reading(self) -> DatabaseConnection:
        """The connection that reads; `StoreUnavailable` while the store is closed."""
        return self._reading or self.writing

    def problem(self) -> str:
        return self._lock.problem() if self._lock else ""

    async def append(self, batch: Batch) -> None:
        """Checks the files before the commit, so that nothing refused is in the log, and after it,
        so that nothing acknowledged is in a missing file."""
        self._check()
        await self.writing.run(self._writer.write, batch)
        self._check()

    def _check(self) -> None:
        if problem := self.problem():
            raise StoreUnavailable(problem)

    async def events(
        self, participant: str, after: int, upto: int, limit: int, own: bool
    ) -> Sequence[StoredEvent]:
        return await self.reading.run(
            _locating,
            after,
            upto,
            lambda db: events.events(db, participant, after, upto, limit, own),
        )

    async def log(self, after: int, upto: int, limit: int) -> Sequence[StoredEvent]:
        return await self.reading.run(
            _locating, after, upto, lambda db: events.log(db, after, upto, limit)
        )

    async def tails(
        self, threads: Sequence[int], upto: int, limit: int
    ) -> Mapping[int, Sequence[bytes]]:
        return await self.reading.run(reads.tails, threads, upto, limit)

    async def thread_page(self, thread: int, before: int | None, limit: int) -> Sequence[bytes]:
        return await self.reading.run(reads.thread_page, thread, before, limit)

    async def message(self, seq: int) -> bytes | None:
        return await self.reading.run(_locating, seq - 1, seq, lambda db: reads.message(db, seq))

    async def read(self, query: Query[T]) -> T:
        return await self.reading.run(answer, query)

    async def admit_mod(self, mod: str, scripts: Mapping[int, str]) -> None:
        await self.writing.run(mods.bring_up, mod, scripts)


def _locating(
    db: sqlite3.Connection, after: int, upto: int, read: Callable[[sqlite3.Connection], T]
) -> T:
    """The result of a read of messages between these positions. If the database is damaged there,
    raises `LogDamaged` with the first unreadable position, so that readers can continue after it.
    """
    try:
        return read(db)
    except sqlite3.DatabaseError as error:
        if not is_page_destroyed(error):
            raise
        for seq in range(after + 1, min(upto, after + MOST_LOCATED) + 1):
            try:
                reads.message(db, seq)
            except sqlite3.DatabaseError as damage:
                text = f"message m{seq} cannot be read, as the database is damaged there"
                _, notice = unreadable_notice(db, seq) or (0, None)
                raise LogDamaged(seq, text, notice) from damage
        raise  # in an index, or far away


def _prepare(db: sqlite3.Connection, name: str) -> int:
    """Prepare the database for writing; returns the end of the log, and of its indexes."""
    migrate(db, name)
    check_end(db, name)
    db.execute("PRAGMA journal_mode = WAL").fetchone()
    db.execute("PRAGMA wal_autocheckpoint = 1000")
    with transaction(db):
        db.execute("INSERT OR REPLACE INTO meta VALUES ('process', ?)", (str(os.getpid()),))
        head = index_all(db)
        db.execute("INSERT INTO run (id, since) VALUES (?, ?)", (new_ulid(), head))
        db.execute("DELETE FROM run WHERE no <= (SELECT max(no) FROM run) - ?", (RUNS,))
        return head
