"""The database that tests of the store share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from hubbub.network.store.migrate import migrate


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """A new in-memory database with all tables."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db, "a test's database")
    yield db
    db.close()
