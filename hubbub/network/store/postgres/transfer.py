"""Copies a network from a SQLite file to Postgres: resumable, and verified at the end."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from hubbub.config.paths import beside, shown_store
from hubbub.errors import LogDamaged, UserError
from hubbub.network.records import MessageRow
from hubbub.network.store.backups import copy_files, files_of, writing
from hubbub.network.store.checksums import ENTRY, proven_body
from hubbub.network.store.connection import explained
from hubbub.network.store.database import transaction
from hubbub.network.store.location import parse_url
from hubbub.network.store.lock import DatabaseLock
from hubbub.network.store.migrate import migrate
from hubbub.network.store.postgres.database import UNFINISHED, connected, own, prepare
from hubbub.network.store.postgres.mod_tables import store_pages
from hubbub.network.store.postgres.session import COPY_DELIVERIES, COPY_MESSAGES, PostgresSession
from hubbub.network.store.verify import verify_entries

__all__ = ["transfer"]

_REMEDY = (
    "restore a backup with `hubbub network restore FILE --replace`, and copy that to an empty "
    "database"
)
_PIECE = 5000
"""Messages per transaction."""
_TABLES = (
    *("participant", "progress", "thread", "channel", "member", "turn", "turn_wake", "turn_step"),
    *("turn_sent", "prompt_part", "token", "read_mark", "memory", "stop", "takeover", "approval"),
    *("request", "ledger", "ledger_name", "spending", "run"),
)
_CALLS = "FROM by_cid WHERE seq IS NULL"
_NUMBERED = ("turn", "approval", "run")


def transfer(source: str, target: str, progress: Callable[[int, int], None]) -> int:
    """Copy the log and its state, resuming an interrupted copy. Returns the number of messages.

    `progress` is called with the messages copied so far and their total. Raises `UserError` for
    stores that cannot be used, `LogDamaged` for damage on either side, and `StoreUnavailable`.
    """
    place = parse_url(source)
    path = place.path
    if path is None or not path.is_file():
        raise UserError(f"{place} does not exist: nothing to copy")
    lock = DatabaseLock(path)
    lock.acquire()
    try:
        with closing(connected(target)) as session:
            with explained(place), closing(sqlite3.connect(path, isolation_level=None)) as db:
                migrate(db, str(place))
                (epoch,) = db.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
                count = _copy(db, session, shown_store(target), epoch, progress)
            folder = beside(target)
            if folder is not None and files_of(path).is_dir():
                with writing(files_of(folder)):
                    copy_files(files_of(path), files_of(folder))
            _finish(session, epoch)  # last, so that no hub starts without the attachments
    finally:
        lock.release()
    return count


def _copy(
    db: sqlite3.Connection,
    session: PostgresSession,
    name: str,
    epoch: str,
    progress: Callable[[int, int], None],
) -> int:
    prepare(session, name, unfinished=epoch)
    own(session, name)
    _begin(session, name, epoch)
    (head,) = db.execute("SELECT coalesce(max(seq), 0) FROM message").fetchone()
    (done,) = session.execute("SELECT coalesce(max(seq), 0) FROM message").fetchone()
    while done < head:
        progress(done, head)
        _copy_piece(db, session, done)
        done = min(done + _PIECE, head)
    progress(done, head)
    with transaction(session):
        for table in _TABLES:
            _copy_table(db, session, table, f"FROM {table}")
        _copy_table(db, session, "call", _CALLS)
        for table in _NUMBERED:
            session.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'no'), max(no)) FROM {table}"
            )
        _copy_mods(db, session)
    _check(db, session)
    return int(head)


def _finish(session: PostgresSession, epoch: str) -> None:
    with transaction(session):
        session.execute("DELETE FROM meta WHERE key IN ('epoch', ?)", (UNFINISHED,))
        session.execute("INSERT INTO meta (key, value) VALUES ('epoch', ?)", (epoch,))


def _begin(session: PostgresSession, name: str, epoch: str) -> None:
    mark = session.execute("SELECT value FROM meta WHERE key = ?", (UNFINISHED,)).fetchone()
    if mark is None:
        tables = [session.execute(f"SELECT 1 FROM {table} LIMIT 1") for table in _TABLES]
        if any(rows.fetchone() for rows in tables):
            raise UserError(f"{name} already has a network: name an empty database")
        session.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (UNFINISHED, epoch))


def _copy_piece(db: sqlite3.Connection, session: PostgresSession, after: int) -> None:
    """Copy one transaction of messages with their deliveries."""
    span = (after, after + _PIECE)
    within = "WHERE m.seq > ? AND m.seq <= ? ORDER BY m.seq"
    rows = db.execute(f"SELECT {ENTRY} FROM message AS m {within}", span).fetchall()
    try:
        for row in rows:
            proven_body(db, row[0], row)
    except LogDamaged as error:
        raise LogDamaged(error.seq, f"{error}: {_REMEDY}") from error
    columns = ", ".join(MessageRow._fields)
    rows = db.execute(f"SELECT {columns}, sum FROM message AS m {within}", span).fetchall()
    named = "SELECT participant, seq, reason, reply FROM delivery AS m"
    with transaction(session):
        session.execute(COPY_MESSAGES, rows)
        session.execute(COPY_DELIVERIES, db.execute(f"{named} {within}", span).fetchall())


def _copy_table(db: sqlite3.Connection, session: PostgresSession, table: str, source: str) -> None:
    of = "sender, cid, digest, value" if table == "call" else "*"
    rows = db.execute(f"SELECT {of} {source}")
    columns = ", ".join(f'"{column[0]}"' for column in rows.description)
    session.execute(f"DELETE FROM {table}")
    session.copy(f"COPY {table} ({columns}) FROM STDIN", rows)


def _copy_mods(db: sqlite3.Connection, session: PostgresSession) -> None:
    """Copy the mods' tables, without the hub's own."""
    session.execute("DELETE FROM mod_page")
    if not db.execute("SELECT 1 FROM mod_schema").fetchone():
        return
    with tempfile.TemporaryDirectory(prefix="hubbub-mods-") as folder:
        path = Path(folder, "mods.db")
        with closing(sqlite3.connect(path, isolation_level=None)) as copy:
            db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()
            for table in ("message", "delivery", "by_cid", "by_thread", "by_scope", *_TABLES):
                copy.execute(f"DELETE FROM {table}")
            copy.execute("DELETE FROM by_participant")
            copy.execute("VACUUM")
        store_pages(session, path)


def _check(db: sqlite3.Connection, session: PostgresSession) -> None:
    """Verify the copy. Raises `LogDamaged`."""
    verify_entries(session)
    sums = "SELECT count(*), CAST(coalesce(sum(sum), 0) AS BIGINT) FROM message"
    if session.execute(sums).fetchone() != db.execute(sums).fetchone():
        raise LogDamaged(0, "the copy's messages differ from the source: empty it, copy again")
    counts = [(f"SELECT count(*) FROM {table}",) * 2 for table in (*_TABLES, "delivery")]
    for theirs, ours in (*counts, (f"SELECT count(*) {_CALLS}", "SELECT count(*) FROM call")):
        if db.execute(theirs).fetchone() != session.execute(ours).fetchone():
            raise LogDamaged(0, f"the copy differs from the source ({ours}): copy again")
