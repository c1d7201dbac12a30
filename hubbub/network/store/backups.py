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

__all__ = ["back_up", "copy_files", "files_of", "restore", "writing"]

_BESIDE = ("-wal", "-shm", "-journal")
"""SQLite's own files for a database: it would apply one that is left over to another database."""
_WRITE_ERRORS = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)
"""When copying, those of the target: the source is only read."""


def files_of(database: Path) -> Path:
    """The folder beside a database for files of mods."""
    return database.with_suffix(".files")


def back_up(url: str, target: Path) -> int:
    """Copy the current store into a new file, whether or not a hub is running on it.

    The files of mods go into a folder beside it. Returns the number of messages. Raises `UserError`
    for a store or target that cannot be used, and `StoreUnavailable` when the disk refuses.
    """
    database, files = _path(url), files_of(target)
    if not database.exists():
        raise UserError(f"{database} does not exist: nothing to back up")
    if files == target:
        raise UserError(f"{target} is for the attachments: name the backup {target.stem}.db")
    for path in (target, files):
        if path.exists():
            raise UserError(f"{path} already exists: name a new file for the backup")
    part, parts = _beside(target, ".part"), _beside(files, ".part")
    if not target.parent.is_dir():
        raise UserError(f"the folder {target.parent} does not exist: create it first")
    with writing(target), explained(SqliteLocation(database)):
        try:
            _copy(database, part)
            if files_of(database).is_dir():
                shutil.rmtree(parts, ignore_errors=True)
                copy_files(files_of(database), parts, missing_ok=True)
                parts.rename(files)
            os.replace(part, target)  # last, so that a backup with this name is complete
            _sync(target.parent)
        finally:
            _remove(part)
            shutil.rmtree(parts, ignore_errors=True)
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
    file = Path(os.path.realpath(database))  # a link stays one
    fresh = _beside(file, ".restoring")
    with writing(database), explained(SqliteLocation(backup)):
        lock = DatabaseLock(database)
        try:
            _copy(backup, fresh)
            _start_anew(fresh)
            lock.acquire()
            _replace_files(files_of(backup), files_of(database))
            for end in _BESIDE:
                Path(f"{file}{end}").unlink(missing_ok=True)
            os.replace(fresh, file)
            _sync(file.parent)
        finally:
            lock.release()
            _remove(fresh)
        return _messages(database)


def _path(url: str) -> Path:
    path = parse_url(url).path
    if path is None:
        raise UserError("a store in memory has no backups: it is lost at the end")
    return path


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _copy(source: Path, target: Path) -> None:
    """Copy a database durably into a new file. Raises `OSError` if it cannot be written."""
    _remove(target)
    make_file(target)
    with closing(sqlite3.connect(source)) as db, closing(sqlite3.connect(target)) as copy:
        if not check_version(db, str(source)):
            raise UserError(f"{source} is empty: it is not a store")
        try:
            db.backup(copy)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode in _WRITE_ERRORS:
                raise OSError(str(error)) from error
            raise
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()
        (result,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            what = result.splitlines()[-1]  # after a heading
            raise StoreUnavailable(f"{source} is damaged ({what}): use an older backup of it")
    _sync(target)


def _remove(database: Path) -> None:
    """Delete a database of ours. Without its journal: SQLite would undo the next one by it."""
    for end in ("", *_BESIDE):
        Path(f"{database}{end}").unlink(missing_ok=True)


def _start_anew(database: Path) -> None:
    """What follows is another history than the one that clients may have seen."""
    with closing(sqlite3.connect(database, isolation_level=None)) as db, transaction(db):
        db.execute("UPDATE meta SET value = ? WHERE key = 'epoch'", (new_ulid(),))
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'run'").fetchone():
            db.execute("DELETE FROM run")
    _sync(database)


def copy_files(source: Path, target: Path, *, missing_ok: bool = False) -> None:
    """Copy a folder durably. `missing_ok`: what a hub deletes or renames meanwhile is left out."""

    def copy(file: str, to: str) -> str:
        try:
            shutil.copy2(file, to)
        except FileNotFoundError:
            if not missing_ok or os.path.exists(file):
                raise
            return to
        _sync(Path(to))
        return to

    try:
        shutil.copytree(source, target, copy_function=copy, dirs_exist_ok=True)
    except shutil.Error as error:
        [(_, _, reason), *_] = error.args[0]  # one for each file
        raise OSError(reason) from error


def _replace_files(source: Path, target: Path) -> None:
    """Replace a folder, keeping the old one until the new one is complete."""
    fresh = target.with_name(target.name + ".restoring")
    old = target.with_name(target.name + ".old")
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)
    try:
        if source.is_dir():
            copy_files(source, fresh)
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
def writing(target: Path) -> Iterator[None]:
    """Report errors of the disk as `StoreUnavailable`, with the target."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"{target} cannot be written: {error}") from error
