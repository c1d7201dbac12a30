"""Numbered scripts bring a database of any age to the present schema."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib import resources

import pytest

from hubbub.errors import StoreVersionError
from hubbub.network.store.migrate import check_version, latest_version, migrate, scripts

NEXT = {1: scripts()[1], 2: "CREATE TABLE added (x); INSERT INTO added VALUES (7);"}


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    yield db
    db.close()


def epoch(db: sqlite3.Connection) -> str:
    text: str = db.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()[0]
    return text


@pytest.mark.behaviour("S-10")
def test_scripts_are_numbered_from_1_without_gaps() -> None:
    folder = resources.files("hubbub.network.store") / "migrations"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    assert len(scripts()) == latest_version() == len(names)


def test_an_empty_database_gets_every_script_and_an_epoch(db: sqlite3.Connection) -> None:
    assert check_version(db, "x") == 0
    migrate(db, "x", NEXT)
    assert check_version(db, "x", 2) == 2
    assert db.execute("SELECT x FROM added").fetchall() == [(7,)]
    assert len(epoch(db)) == 26


def test_an_older_database_gets_only_what_it_has_not_seen(db: sqlite3.Connection) -> None:
    migrate(db, "x", {1: NEXT[1]})
    db.execute("INSERT INTO channel VALUES ('desk', '')")
    first = epoch(db)
    migrate(db, "x", NEXT)
    migrate(db, "x", NEXT)
    assert db.execute("SELECT x FROM added").fetchall() == [(7,)]
    assert db.execute("SELECT name FROM channel").fetchall() == [("desk",)]
    assert epoch(db) == first


@pytest.mark.behaviour("S-10")
def test_a_script_that_fails_leaves_the_version_before_it(db: sqlite3.Connection) -> None:
    broken = {**NEXT, 3: "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);"}
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(db, "x", broken)
    assert check_version(db, "x", 3) == 2
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert "added" in tables
    assert "half" not in tables
    assert not db.in_transaction


def test_a_database_of_tomorrow_is_left_alone(db: sqlite3.Connection) -> None:
    migrate(db, "x", NEXT)
    with pytest.raises(StoreVersionError, match="schema version 2, written by a newer Hubbub"):
        migrate(db, "x", {1: NEXT[1]})
