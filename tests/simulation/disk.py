"""A disk under the real SQLite that is slow, fills up, and loses unsynced data in a crash.

Each piece of work is atomic, as a transaction is. All commits survive a kill, whether or not they
were reported.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Concatenate, Literal, ParamSpec, TypeVar

from hubbub.errors import StoreUnavailable
from hubbub.network.store.connection import DatabaseConnection, disk_trouble
from hubbub.network.store.location import SqliteLocation
from tests.simulation.loop import VirtualLoop

__all__ = ["Disk", "Trouble"]

P = ParamSpec("P")
T = TypeVar("T")

Trouble = Literal["full", "broken"]
_FULL_SYNC = 2


class Disk:
    """The database of successive hubs."""

    def __init__(self, loop: VirtualLoop, image: bytes = b""):
        self._loop = loop
        self._db = _database(image)
        self._synced: bytes | None = None
        """The only safe state if the hub does not sync each commit."""
        self.troubles: list[Trouble] = []
        """The failures of the next pieces of work."""

    async def connect(self, place: SqliteLocation, *pragmas: str) -> DatabaseConnection:
        for pragma in pragmas:
            self._db.execute(f"PRAGMA {pragma}")
        (sync,) = self._db.execute("PRAGMA synchronous").fetchone()
        self._synced = None if sync >= _FULL_SYNC else self.image()
        return _DiskConnection(self._loop, self, self._db)

    def crash(self) -> None:
        """Loses power, which also cuts off open connections."""
        self._db = _database(self.image())

    def image(self) -> bytes:
        """The state after a crash."""
        if self._synced is not None:
            return self._synced
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        return self._db.serialize() if pages else b""

    def sql(self, query: str, *args: object) -> list[tuple[object, ...]]:
        return list(self._db.execute(query, args))


def _database(image: bytes) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None, cached_statements=256)
    if image:
        db.deserialize(image)
    return db


class _DiskConnection:
    def __init__(self, loop: VirtualLoop, disk: Disk, db: sqlite3.Connection):
        self._loop, self._disk, self._db = loop, disk, db
        self._free_at = 0.0
        self._open = True

    async def run(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kw: P.kwargs,
    ) -> T:
        if not self._open:
            raise StoreUnavailable("the store is closed")
        loop, most = self._loop, self._loop.weather.disk
        done = loop.create_future()
        work = partial(function, self._db, *args, **kw)

        def answer(value: T | None, error: Exception | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(value)
            else:
                done.set_exception(error)

        def execute() -> None:
            value, error = None, None
            try:
                value = self._perform(work)
            except Exception as raised:  # noqa: BLE001  passed on to the caller
                error = raised
            loop.call_later(loop.random.uniform(0, most), answer, value, error)

        self._free_at = max(self._free_at, loop.time() + loop.random.uniform(0, most))
        loop.call_at(self._free_at, execute)
        try:
            result: T = await done
        except sqlite3.Error as error:
            if disk_trouble(error):
                raise StoreUnavailable(f"the store cannot work now: {error}") from error
            raise
        return result

    def _perform(self, work: Callable[[], T]) -> T:
        trouble = self._disk.troubles.pop(0) if self._disk.troubles else None
        if trouble == "broken":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        if trouble == "full":
            (pages,) = self._db.execute("PRAGMA page_count").fetchone()
            self._db.execute(f"PRAGMA max_page_count = {pages}")
        try:
            return work()
        finally:
            if trouble == "full":
                self._db.execute("PRAGMA max_page_count = 1073741823")

    async def close(self) -> None:
        self._open = False
