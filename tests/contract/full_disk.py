"""A full disk for SQLite: the database cannot grow."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hubbub.network.ports import Store
from hubbub.network.store import SqliteStore

__all__ = ["full_disk"]

_NO_LIMIT = 1_073_741_823


@asynccontextmanager
async def full_disk(store: Store) -> AsyncIterator[None]:
    """The store's file cannot grow while the context lasts."""
    assert isinstance(store, SqliteStore)
    await store.writing.run(_limit, 1)
    yield
    await store.writing.run(_limit, _NO_LIMIT)


def _limit(db: sqlite3.Connection, pages: int) -> None:
    """SQLite uses the current size if `pages` is less."""
    db.execute(f"PRAGMA max_page_count = {pages}").fetchone()
