"""Connections to SQLite: a thread per file, one hop per function, errors of our tree."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import aiosqlite

from hubbub.errors import LogDamaged, StoreUnavailable, UserError
from hubbub.network.store.checksums import REMEDY
from hubbub.network.store.location import SqliteLocation

__all__ = [
    "Connect",
    "DatabaseConnection",
    "MemoryConnection",
    "StoreConnection",
    "connect",
    "disk_trouble",
    "explained",
]

P = ParamSpec("P")
T = TypeVar("T")

_TROUBLE = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOTADB,
    }
)
_BUSY_TIMEOUT_S = 5.0


def disk_trouble(error: sqlite3.Error) -> bool:
    """Whether the disk or another process caused the error, rather than the statement."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _TROUBLE


class DatabaseConnection(Protocol):
    """A connection to a database that runs functions one at a time."""

    async def run(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kw: P.kwargs,
    ) -> T:
        """The result of `function(connection, ...)`. Raises what it raises, and `StoreUnavailable`
        when the disk refuses or the connection is closed."""
        ...

    async def close(self) -> None: ...


class Connect(Protocol):
    """Opens connections, each with these pragmas. Raises `sqlite3.Error`."""

    async def __call__(self, place: SqliteLocation, *pragmas: str) -> DatabaseConnection: ...


class StoreConnection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole function in its thread."""

    ending: asyncio.Future[None] | None = None
    """Done when the thread makes no more calls to this loop."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]):
        super().__init__(connector, iter_chunk_size=64)
        self._thread.daemon = True  # so that it does not block the program's exit

    def stop(self) -> asyncio.Future[None] | None:
        self.ending = super().stop()
        return self.ending

    async def run(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kw: P.kwargs,
    ) -> T:
        """Call `function(connection, ...)` in the connection's thread, in one hop.

        Raises `StoreUnavailable` when the disk refuses or the connection is closed.
        """
        if self._connection is None or not self._running:
            raise StoreUnavailable("the store is closed")
        try:
            # aiosqlite's executor has no annotations
            result: T = await self._execute(function, self._connection, *args, **kw)  # type: ignore[no-untyped-call]
        except sqlite3.Error as error:
            if disk_trouble(error):
                raise StoreUnavailable(f"the store cannot work now: {error}") from error
            raise
        return result


class MemoryConnection:
    """A connection to a database in memory, without a thread, as there is no disk to wait for."""

    def __init__(self, db: sqlite3.Connection):
        self._db, self._open = db, True

    async def run(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kw: P.kwargs,
    ) -> T:
        """Call `function(connection, ...)` at once, and return in the loop's next iteration.

        Raises `StoreUnavailable` when memory runs out or the connection is closed.
        """
        if not self._open:
            raise StoreUnavailable("the store is closed")
        try:
            return function(self._db, *args, **kw)
        except sqlite3.Error as error:
            if disk_trouble(error):
                raise StoreUnavailable(f"the store cannot work now: {error}") from error
            raise
        finally:
            await asyncio.sleep(0)

    async def close(self) -> None:
        self._open = False
        self._db.close()


async def connect(place: SqliteLocation, *pragmas: str) -> DatabaseConnection:
    """Open a connection, with its own thread for a file. Raises `sqlite3.Error`."""

    def connector() -> sqlite3.Connection:
        db = sqlite3.connect(
            place.database, timeout=_BUSY_TIMEOUT_S, isolation_level=None, cached_statements=256
        )
        try:
            for pragma in pragmas:
                db.execute(f"PRAGMA {pragma}")
        except BaseException:
            db.close()
            raise
        return db

    if place.path is None:
        return MemoryConnection(connector())
    connection = StoreConnection(connector)
    try:
        await connection
    except BaseException:
        if connection.ending:  # aiosqlite does not wait for the thread of a failed connection
            await connection.ending
        raise
    return connection


@contextmanager
def explained(place: SqliteLocation) -> Iterator[None]:
    """Convert database errors to `UserError` with a sentence for people, or to `StoreUnavailable`
    if the disk is the cause."""
    try:
        yield
    except LogDamaged:
        raise
    except UnicodeDecodeError as error:  # SQLite quotes damaged names in its messages
        raise StoreUnavailable(f"{place} is damaged: {REMEDY}") from error
    except (sqlite3.DatabaseError, StoreUnavailable) as error:
        cause = error.__cause__ if isinstance(error, StoreUnavailable) else error
        if cause is None:
            raise
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            text = f"{place} is not a database: configure another file as the store"
        elif code == sqlite3.SQLITE_CORRUPT:
            raise StoreUnavailable(f"{place} is damaged: {REMEDY}") from error
        elif code == sqlite3.SQLITE_FULL:
            text = f"{place} cannot be written: the disk is full; make room, then start again"
            raise StoreUnavailable(text) from error
        elif code == sqlite3.SQLITE_IOERR:
            text = f"{place} cannot be read or written ({cause}): check the disk and system log"
            raise StoreUnavailable(text) from error
        else:
            text = f"{place} cannot be used as a store: {cause or error}"
        raise UserError(text) from error
