"""The tables of mods: a SQLite database whose pages are rows in Postgres.

Mods use SQLite's dialect, with its search, triggers and JSON. Their database is a copy in a
temporary folder, opened only by the hub's writing thread. The pages changed by a batch are written
to Postgres in the batch's transaction, so that both are stored or neither.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from hubbub.network.queries import Query
from hubbub.network.records import ModRows
from hubbub.network.store.database import transaction
from hubbub.network.store.migrate import migrate
from hubbub.network.store.mods import bring_up, write_mod_rows
from hubbub.network.store.postgres.session import PostgresSession
from hubbub.network.store.sqlite import answer

__all__ = ["ModTables", "store_pages"]

T = TypeVar("T")

_STORE = "INSERT INTO mod_page VALUES (?, ?) ON CONFLICT (no) DO UPDATE SET data = excluded.data"
_HEADER, _FRAME = 32, 24
"""Bytes at the start of SQLite's write-ahead log, and before each page in it."""


class ModTables:
    """Used by one thread. Call `settle` or `undo` after every transaction that wrote to it."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._db: sqlite3.Connection | None = None
        self._new = self._ahead = False

    def read(self, session: PostgresSession, query: Query[T]) -> T:
        """The answer to a query about mods."""
        return answer(self._copy(session), query)

    def write(self, session: PostgresSession, rows: Sequence[ModRows]) -> None:
        """Write the rows, within the session's transaction; see `write_mod_rows`."""
        db = self._copy(session)
        self._ahead = True
        with transaction(db):
            write_mod_rows(db, rows)
        self._store_changes(session, db)

    def admit(self, session: PostgresSession, mod: str, scripts: Mapping[int, str]) -> None:
        """See `bring_up`; scripts before a failing one stay applied."""
        db = self._copy(session)
        self._ahead = True
        try:
            try:
                bring_up(db, mod, scripts)
            finally:
                with transaction(session):
                    self._store_changes(session, db)
                self.settle()
        finally:
            self.undo()

    def settle(self) -> None:
        """The writes are committed in Postgres."""
        self._ahead = False

    def undo(self) -> None:
        """Discard the copy if it has writes that were not committed in Postgres."""
        if self._ahead:
            self.close()

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
        if self._folder is not None:
            self._folder.cleanup()
        self._db = self._folder = None
        self._ahead = False

    def _copy(self, session: PostgresSession) -> sqlite3.Connection:
        if self._db is None:
            self._folder = tempfile.TemporaryDirectory(prefix="hubbub-mods-")
            path = Path(self._folder.name, "mods.db")
            with path.open("wb") as file:
                for (data,) in session.execute("SELECT data FROM mod_page ORDER BY no"):
                    file.write(data)
                self._new = file.tell() == 0
            self._db = _opened(path)
        return self._db

    def _store_changes(self, session: PostgresSession, db: sqlite3.Connection) -> None:
        path = Path(db.execute("PRAGMA database_list").fetchone()[2])
        if pages := _changed(Path(f"{path}-wal").read_bytes()):
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if self._new:
                store_pages(session, path)
                self._new = False
            else:
                session.executemany(_STORE, pages.items())


def store_pages(session: PostgresSession, database: Path) -> None:
    """Write all pages of a SQLite database whose write-ahead log is empty."""
    with closing(sqlite3.connect(database)) as db:
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with database.open("rb") as file:
        session.executemany(_STORE, enumerate(iter(lambda: file.read(size), b""), 1))


def _opened(path: Path) -> sqlite3.Connection:
    """Open the database with the hub's tables, empty, so that mods cannot use their names."""
    db = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    for pragma in ("journal_mode = WAL", "wal_autocheckpoint = 0", "synchronous = OFF"):
        db.execute(f"PRAGMA {pragma}").fetchone()
    migrate(db, "the tables of mods")
    return db


def _changed(log: bytes) -> Mapping[int, bytes]:
    """The pages in SQLite's write-ahead log as of its last commit, by number."""
    size = int.from_bytes(log[8:12])
    pages: dict[int, bytes] = {}
    committed: dict[int, bytes] = {}
    for at in range(_HEADER, len(log), _FRAME + size):
        frame = log[at : at + _FRAME]
        pages[int.from_bytes(frame[:4])] = log[at + _FRAME : at + _FRAME + size]
        if int.from_bytes(frame[4:8]):  # nonzero only in a commit's last frame
            committed.update(pages)
    return committed
