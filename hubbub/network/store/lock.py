"""One hub per database: an advisory lock on `<database>.lock`, held while the store is open."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from hubbub.errors import UserError

__all__ = ["DatabaseLock"]


class DatabaseLock:
    """An exclusive lock that the system releases when its process dies, however it dies.

    The file stays: removing it would let two processes lock two files of the same name.
    """

    def __init__(self, database: Path):
        self._database = database
        self._path = database.with_name(database.name + ".lock")
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock or raise `UserError`, which names the process that holds it."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UserError(f"{self._path} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise UserError(
                f"{self._database} is in use by another hub (process {holder}): "
                "stop that one first, or give this network a store of its own"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode("ascii"), 0)
        self._fd = fd

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
