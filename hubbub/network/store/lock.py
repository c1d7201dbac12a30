"""One hub per database: a lock on the database's own inode, and a watch over its files.

The lock is on one byte that lies beyond those that SQLite locks, so that SQLite's readers and
writers of other processes (tokens, backups) go on; `docs/decisions` says why.
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
"""SQLite locks 512 bytes from 1 GiB on, and never writes what lies around them."""
_FLOCK = struct.Struct("@hhqqi4x")
"""Linux's `struct flock`."""
_BESIDE = ("", "-wal", "-shm")

_TICK_NS = 100_000_000
"""No system's clock for files ticks more slowly than this, by far."""

_held: set[Inode] = set()
"""Databases that this process has locked. Another of its hubs must not even open and close such a
file: that would take SQLite's own locks away."""


class DatabaseLock:
    """An exclusive lock that the system releases when its process dies, however it dies.

    Of what name the database is opened by, or whether its files are moved, makes no difference.
    Take it before SQLite opens the database, and release it when SQLite has closed it.
    """

    def __init__(self, database: Path):
        self._database = database
        self._files = tuple(Path(f"{os.path.realpath(database)}{end}") for end in _BESIDE)
        self._fd: int | None = None
        self._inode: Inode = (0, 0)
        self._watched: list[tuple[Path, Inode]] = []
        self._folder = os.path.dirname(self._files[0])
        self._seen: tuple[Inode, int] | None = None
        """The folder as it was, with its time of change, when all files in it were there."""
        self._lost = ""

    def acquire(self) -> None:
        """Take the lock or raise `UserError`, which names the process that holds it."""
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
        found = os.fstat(fd)
        self._inode = (found.st_dev, found.st_ino)
        _held.add(self._inode)

    def release(self) -> None:
        if self._fd is not None:
            _held.discard(self._inode)
            os.close(self._fd)
            self._fd, self._watched = None, []

    def watch(self) -> None:
        """From now on `problem` looks whether the database's files are those that SQLite has."""
        make_private(self._database)
        self._watched = [(path, _inode(path)) for path in self._files if path.exists()]
        if self._watched:
            self._watched[0] = (self._files[0], self._inode)
        self._seen = None

    def problem(self) -> str:
        """Why nothing that is written now would last, in a sentence; empty: it would.

        Once a file was gone the answer stays: the log may have lost what SQLite had in it.
        """
        if not self._lost and self._folder_has_changed():
            gone = next((path for path, inode in self._watched if _inode(path) != inode), None)
            if gone is not None:
                self._lost = (
                    f"{gone} was deleted, moved or replaced while the hub runs, and nothing more "
                    "is accepted: stop the hub, put the file or a backup in its place, start again"
                )
        return self._lost

    def _folder_has_changed(self) -> bool:
        """Whether a file of the folder may have come, gone or got another name since the last look:
        one question to the system, in place of one for each file."""
        try:
            found = os.stat(self._folder)
        except OSError:
            return True
        seen = ((found.st_dev, found.st_ino), found.st_mtime_ns)
        changed = seen != self._seen
        # Of two changes within a tick of the system's clock the second leaves the time as it was.
        self._seen = seen if time.time_ns() - found.st_mtime_ns > _TICK_NS else None
        return changed

    def _in_use(self) -> UserError:
        return UserError(
            f"{self._database} is in use by another hub (process {_holder(self._database)}): "
            "stop that one first, or give this network a store of its own"
        )


def make_file(database: Path) -> None:
    """Make an empty database if there is none, which only its user may read. Raises `OSError`.

    SQLite gives the files that it makes beside it the same mode.
    """
    with suppress(FileExistsError):
        os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def make_private(database: Path) -> None:
    """Let nobody but its user read a database that is there."""
    for end in _BESIDE:
        path = f"{os.path.realpath(database)}{end}"
        with suppress(FileNotFoundError, PermissionError):  # of another user: that one decides
            mode = stat.S_IMODE(os.stat(path).st_mode)
            if mode & 0o077:
                os.chmod(path, mode & 0o700)


def _inode(path: Path) -> Inode:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _lock(fd: int) -> None:
    """Raises `OSError` if another has it.

    It belongs to the open file, where the system has that: a lock of the process ends as soon as
    SQLite closes a connection while it holds no lock itself.
    """
    if hasattr(fcntl, "F_OFD_SETLK"):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _BYTE, 1, 0))
    else:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _BYTE)


def _holder(database: Path) -> str:
    """The process that has said in the database that it is the hub. By another name of the file (a
    hard link) SQLite would not see what the hub has written lately, and make files of its own."""
    if not os.path.exists(f"{os.path.realpath(database)}-wal"):
        return "unknown"
    with suppress(sqlite3.Error), closing(sqlite3.connect(database, timeout=1)) as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'process'").fetchone()
        return str(row[0]) if row else "unknown"
    return "unknown"
