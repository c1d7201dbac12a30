"""Numbered scripts bring a database of any age to the present schema."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from hubbub.errors import StoreVersionError
from hubbub.network.store.migrate import check_version, latest_version, migrate, scripts
from hubbub.network.store.mods import bring_up

FIRST = latest_version()
NEXT = {**scripts(), FIRST + 1: "CREATE TABLE added (x); INSERT INTO added VALUES (7);"}


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    yield db
    db.close()


def epoch(db: sqlite3.Connection) -> str:
    text: str = db.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()[0]
    return text


def test_an_empty_database_gets_every_migration_and_an_epoch(db: sqlite3.Connection) -> None:
    assert check_version(db, "x") == 0
    migrate(db, "x", NEXT)
    assert check_version(db, "x", FIRST + 1) == FIRST + 1
    assert db.execute("SELECT x FROM added").fetchall() == [(7,)]
    assert len(epoch(db)) == 26


def test_an_older_database_gets_only_the_missing_migrations(db: sqlite3.Connection) -> None:
    migrate(db, "x", scripts())
    db.execute("INSERT INTO channel VALUES ('desk', '')")
    first = epoch(db)
    migrate(db, "x", NEXT)
    migrate(db, "x", NEXT)
    assert db.execute("SELECT x FROM added").fetchall() == [(7,)]
    assert db.execute("SELECT name FROM channel").fetchall() == [("desk",)]
    assert epoch(db) == first


@pytest.mark.behaviour("S-10")
def test_a_failed_migration_leaves_the_version_before_it(db: sqlite3.Connection) -> None:
    broken = {**NEXT, FIRST + 2: "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);"}
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(db, "x", broken)
    assert check_version(db, "x", FIRST + 2) == FIRST + 1
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert "added" in tables
    assert "half" not in tables
    assert not db.in_transaction


def test_a_database_of_a_newer_version_is_refused(db: sqlite3.Connection) -> None:
    migrate(db, "x", NEXT)
    with pytest.raises(StoreVersionError, match=rf"version {FIRST + 1}, written by a newer Hubbub"):
        migrate(db, "x", scripts())


@pytest.mark.behaviour("M-20")
def test_a_mod_gets_its_tables_in_an_existing_database_and_can_rename_a_column(
    db: sqlite3.Connection,
) -> None:
    migrate(db, "x")
    steps = {1: "CREATE TABLE polls_vote (who TEXT);"}
    bring_up(db, "polls", steps)
    db.execute("INSERT INTO polls_vote VALUES ('ann')")
    bring_up(db, "polls", {**steps, 2: "ALTER TABLE polls_vote RENAME COLUMN who TO voter;"})
    assert db.execute("SELECT voter FROM polls_vote").fetchall() == [("ann",)]
