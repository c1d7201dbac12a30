"""One hub per database: a lock on the database's own inode, and a watch over its files.

The lock covers one byte beyond those that SQLite locks, so that readers and writers of other
processes (tokens, backups) still work; `docs/decisions` has the reasons.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import struct
import time
from contextlib import closing, suppress
from pathlib import Path

from hubbub.errors import UserError

__all__ = ["DatabaseLock", "make_file", "make_private"]

Inode = tuple[int, int]

_BYTE = 0x4000_0000 + 1024
"""SQLite locks 512 bytes at 1 GiB, and never writes near them."""
_FLOCK = struct.Struct("@hhqqi4x")
"""Linux's `struct flock`."""
_BESIDE = ("", "-wal", "-shm")

_TICK_NS = 100_000_000
"""Longer than the resolution of any system's file timestamps."""

_held: set[Inode] = set()
"""Databases that this process has locked. Another hub in the process must not even open and close
such a file, as that would release SQLite's own locks."""


class DatabaseLock:
    """An exclusive lock that the system releases when its process ends, in any way.

    It is independent of the database's name and of moves of its files. Acquire it before SQLite
    opens the database, and release it after SQLite has closed it.
    """

    def __init__(self, database: Path):
        self._database = database
        self._files = tuple(Path(f"{os.path.realpath(database)}{end}") for end in _BESIDE)
        self._fd: int | None = None
        self._inode: Inode = (0, 0)
        self._watched: list[tuple[Path, Inode]] = []
        self._folder = os.path.dirname(self._files[0])
        self._seen: tuple[Inode, int] | None = None
        """The folder's inode and modification time at the last check with all files present."""
        self._lost = ""

    def acquire(self) -> None:
        """Acquire the lock, or raise `UserError` with the process that holds it."""
        try:
            make_file(self._database)
            if _inode(self._database) in _held:
                raise BlockingIOError
            fd = os.open(self._database, os.O_RDWR | os.O_CLOEXEC)
        except BlockingIOError:
            raise self._in_use() from None
        except OSError as error:
            raise UserError(f"{self._database} cannot be opened: {error.strerror}") from error
        try:
            _lock(fd)
        except OSError:
            os.close(fd)
            raise self._in_use() from None
        self._fd, self._lost = fd, ""
        status = os.fstat(fd)
        self._inode = (status.st_dev, status.st_ino)
        _held.add(self._inode)

    def release(self) -> None:
        if self._fd is not None:
            _held.discard(self._inode)
            os.close(self._fd)
            self._fd, self._watched = None, []

    def watch(self) -> None:
        """Let `problem` check from now on that the files are still those that SQLite has open."""
        make_private(self._database)
        self._watched = [(path, _inode(path)) for path in self._files if path.exists()]
        if self._watched:
            self._watched[0] = (self._files[0], self._inode)
        self._seen = None

    def problem(self) -> str:
        """Why writes would be lost, as a sentence; empty if they would not.

        It stays set once a file was missing, as the log may have lost what SQLite had in it.
        """
        if not self._lost and self._folder_has_changed():
            gone = next((path for path, inode in self._watched if _inode(path) != inode), None)
            if gone is not None:
                self._lost = (
                    f"{gone} was deleted, moved or replaced while the hub is running, so nothing "
                    "more is accepted: stop the hub, restore the file or a backup, start again"
                )
        return self._lost

    def _folder_has_changed(self) -> bool:
        """Whether a file in the folder may have been added, removed or renamed since the last
        check: one system call instead of one per file."""
        try:
            status = os.stat(self._folder)
        except OSError:
            return True
        seen = ((status.st_dev, status.st_ino), status.st_mtime_ns)
        changed = seen != self._seen
        # The second of two changes within the timestamp's resolution does not change it.
        self._seen = seen if time.time_ns() - status.st_mtime_ns > _TICK_NS else None
        return changed

    def _in_use(self) -> UserError:
        return UserError(
            f"{self._database} is in use by another hub (process {_holder(self._database)}): "
            "stop it first, or give this network a store of its own"
        )


def make_file(database: Path) -> None:
    """Create an empty database, readable only by its user, if there is none. Raises `OSError`.

    SQLite creates its other files with the same mode.
    """
    with suppress(FileExistsError):
        os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def make_private(database: Path) -> None:
    """Restrict an existing database to its user."""
    for end in _BESIDE:
        path = f"{os.path.realpath(database)}{end}"
        with suppress(FileNotFoundError, PermissionError):  # not ours to change
            mode = stat.S_IMODE(os.stat(path).st_mode)
            if mode & 0o077:
                os.chmod(path, mode & 0o700)


def _inode(path: Path) -> Inode:
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def _lock(fd: int) -> None:
    """Raises `OSError` if another process has the lock.

    The lock belongs to the open file where the system supports that. A lock of the process would
    end as soon as SQLite closes a connection while holding no lock itself.
    """
    if hasattr(fcntl, "F_OFD_SETLK"):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _BYTE, 1, 0))
    else:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _BYTE)


def _holder(database: Path) -> str:
    """The hub's process id from the database. Through another name of the file (a hard link) SQLite
    would not see recent writes, and would create files of its own."""
    if not os.path.exists(f"{os.path.realpath(database)}-wal"):
        return "unknown"
    with suppress(sqlite3.Error), closing(sqlite3.connect(database, timeout=1)) as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'process'").fetchone()
        return str(row[0]) if row else "unknown"
    return "unknown"
