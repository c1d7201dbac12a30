"""Connections run work in their own thread and tell disk failures from defects."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.errors import StoreUnavailable
from hubbub.network.store import SqliteStore
from hubbub.network.store.connection import connect, explained
from hubbub.network.store.database import snapshot, transaction
from hubbub.network.store.location import SqliteLocation, parse_url
from hubbub.testing.store_rows import direct, opened, seqs


@pytest.mark.parametrize("file", ["x.db", None])
async def test_work_on_a_file_runs_in_one_thread_until_the_connection_is_closed(
    tmp_path: Path, file: str | None
) -> None:
    def work(db: sqlite3.Connection, a: str, *, b: str) -> tuple[str, int]:
        return a + b, threading.get_ident()

    connection = await connect(SqliteLocation(tmp_path / file if file else None))
    text, first = await connection.run(work, "x", b="y")
    _, second = await connection.run(work, "x", b="y")
    assert text == "xy"
    assert first == second
    assert (first == threading.get_ident()) == (file is None)
    with pytest.raises(
        sqlite3.OperationalError, match="no such table"
    ):  # a defect, not a failure of the disk
        await connection.run(lambda db: db.execute("SELECT * FROM nowhere"))
    await connection.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await connection.run(lambda db: db.execute("SELECT 1"))


async def test_a_connection_that_fails_to_open_leaves_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        await connect(SqliteLocation(tmp_path / "nowhere" / "x.db"))
    (tmp_path / "x.db").write_bytes(b"dear diary\n" * 500)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        await connect(SqliteLocation(tmp_path / "x.db"), "user_version = 1")
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive()


def test_a_transaction_commits_all_or_nothing(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE t (x)")
    with transaction(db):
        db.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(ZeroDivisionError), transaction(db):
        db.execute("INSERT INTO t VALUES (1 / ?)", (1 // 0,))
    assert db.execute("SELECT count(*) FROM t").fetchone() == (1,)
    assert not db.in_transaction


def test_a_transaction_locks_the_database_from_its_start(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    other = sqlite3.connect(tmp_path / "x.db", isolation_level=None, timeout=0)
    with transaction(db), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    with transaction(other):
        other.execute("CREATE TABLE t (x)")
    other.close()
    db.close()


def test_a_snapshot_does_not_see_concurrent_writes(tmp_path: Path) -> None:
    writer = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE t (x)")
    reader = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    with snapshot(reader):
        reader.execute("SELECT count(*) FROM t").fetchone()
        writer.execute("INSERT INTO t VALUES (1)")
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert reader.execute("SELECT count(*) FROM t").fetchone() == (1,)
    with pytest.raises(sqlite3.OperationalError), snapshot(reader):
        reader.execute("SELECT * FROM nowhere")
    assert not reader.in_transaction
    reader.close()
    writer.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(parse_url(f"sqlite:{tmp_path}/x.db"))
    async with opened(store):
        yield store


async def test_a_locked_database_is_unavailable_until_it_is_released(
    tmp_path: Path, store: SqliteStore
) -> None:
    await store.writing.run(lambda db: db.execute("PRAGMA busy_timeout = 10").fetchone())
    other = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="cannot work now: database is locked"):
        await store.append(direct(1, 3))
    other.execute("COMMIT")
    other.close()
    await store.append(direct(1, 3))
    assert seqs(await store.events("bob", 0, 9, 9, own=False)) == [1, 2, 3]


async def test_a_log_damaged_while_it_is_open_is_unavailable(
    tmp_path: Path, store: SqliteStore
) -> None:
    await store.append(direct(1, 300))
    await store.close()
    await store.open()
    with (tmp_path / "x.db").open("r+b") as file:
        for page in range(10, (tmp_path / "x.db").stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    with pytest.raises(StoreUnavailable, match="message m1 cannot be read, as the database is dam"):
        await store.log(0, 300, 500)


async def test_commits_of_the_writing_connection_are_durable(store: SqliteStore) -> None:
    def pragmas(db: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "wal_autocheckpoint", "busy_timeout")
        return [db.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await store.writing.run(pragmas) == ["wal", 2, 1000, 5000]
    with pytest.raises(StoreUnavailable, match="readonly"):
        await store.reading.run(lambda db: db.execute("DELETE FROM message"))


def test_a_disk_error_names_the_file(tmp_path: Path) -> None:
    message = r"x\.db cannot be written: the disk is full; make room, then start again"
    location = SqliteLocation(tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(StoreUnavailable, match=message), explained(location):
            db.execute("CREATE TABLE t (x)")
