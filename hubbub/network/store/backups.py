"""Backups: copying a store, even while its hub is running, and restoring such a copy."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hubbub.errors import StoreUnavailable, UserError
from hubbub.ids import new_ulid
from hubbub.network.store.connection import explained
from hubbub.network.store.database import transaction
from hubbub.network.store.location import SqliteLocation, parse_url
from hubbub.network.store.lock import DatabaseLock, make_file
from hubbub.network.store.migrate import check_version

__all__ = ["back_up", "files_of", "restore"]


def files_of(database: Path) -> Path:
    """The folder beside a database for files of mods."""
    return database.with_suffix(".files")


def back_up(url: str, target: Path) -> int:
    """Copy the current store into a new file, whether or not a hub is running on it.

    The files of mods go into a folder beside it. Returns the number of messages. Raises `UserError`
    for a store or target that cannot be used, and `StoreUnavailable` when the disk refuses.
    """
    database = _path(url)
    if not database.exists():
        raise UserError(f"{database} does not exist: nothing to back up")
    if target.exists() or files_of(target).exists():
        raise UserError(f"{target} already exists: name a new file for the backup")
    with _disk(target), explained(SqliteLocation(database)):
        _copy(database, target)
        if files_of(database).is_dir():
            shutil.copytree(files_of(database), files_of(target))
        return _messages(target)


def restore(url: str, backup: Path, *, replace: bool) -> int:
    """Restore the store from a backup, with a new epoch, so that all clients start over.

    Returns the number of messages. Raises as `back_up`, and `UserError` if a hub is running on the
    store, or if it exists and `replace` is false.
    """
    database = _path(url)
    if not backup.is_file():
        raise UserError(
            f"{backup} does not exist: name the file that `hubbub network backup` wrote"
        )
    if database.exists() and not replace:
        raise UserError(f"{database} already exists: use --replace to overwrite it")
    with _disk(database), explained(SqliteLocation(backup)):
        fresh = database.with_name(database.name + ".restoring")
        fresh.unlink(missing_ok=True)
        lock = DatabaseLock(database)
        try:
            _copy(backup, fresh)
            _start_anew(fresh)
            lock.acquire()
            _replace_files(files_of(backup), files_of(database))
            for end in ("-wal", "-shm"):
                Path(f"{database}{end}").unlink(missing_ok=True)
            os.replace(fresh, database)
            _sync(database.parent)
        finally:
            lock.release()
            fresh.unlink(missing_ok=True)
        return _messages(database)


def _path(url: str) -> Path:
    path = parse_url(url).path
    if path is None:
        raise UserError("a store in memory has no backups: it is lost at the end")
    return path


def _copy(source: Path, target: Path) -> None:
    """Copy a database durably, completely or not at all."""
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    try:
        make_file(part)
        with closing(sqlite3.connect(source)) as db, closing(sqlite3.connect(part)) as copy:
            if not check_version(db, str(source)):
                raise UserError(f"{source} is empty: it is not a store")
            db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()
            (result,) = copy.execute("PRAGMA quick_check(1)").fetchone()
            if result != "ok":
                raise StoreUnavailable(f"{source} is damaged ({result}): use an older backup of it")
        _sync(part)
        os.replace(part, target)
        _sync(target.parent)
    finally:
        part.unlink(missing_ok=True)


def _start_anew(database: Path) -> None:
    """What follows is another history than the one that clients may have seen."""
    with closing(sqlite3.connect(database, isolation_level=None)) as db, transaction(db):
        db.execute("UPDATE meta SET value = ? WHERE key = 'epoch'", (new_ulid(),))
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'run'").fetchone():
            db.execute("DELETE FROM run")
    _sync(database)


def _replace_files(source: Path, target: Path) -> None:
    """Replace a folder, keeping the old one until the new one is complete."""
    fresh = target.with_name(target.name + ".restoring")
    old = target.with_name(target.name + ".old")
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)
    try:
        if source.is_dir():
            shutil.copytree(source, fresh)
        if target.exists():
            target.rename(old)
        if fresh.exists():
            fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _messages(database: Path) -> int:
    with closing(sqlite3.connect(database)) as db:
        head: int = db.execute("SELECT coalesce(max(seq), 0) FROM message").fetchone()[0]
        return head


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def _disk(target: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, shutil.Error) as error:
        raise StoreUnavailable(f"{target} cannot be written: {error}") from error
