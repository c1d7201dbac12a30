"""A Postgres of its own for tests: killed, stopped, dumped and restored."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from hubbub.app import postgres_server
from hubbub.app.postgres_server import MISSING, postgres_programs

__all__ = ["PostgresServer", "running_postgres"]


class PostgresServer(postgres_server.PostgresServer):
    """One that a test does its worst to."""

    initdb_options = ("--no-sync",)

    def __init__(self, folder: Path):
        super().__init__(folder)
        if sys.platform == "linux":
            # After a kill it syncs file by file otherwise, of which each database has 300.
            with (folder / "data" / "postgresql.conf").open("a") as settings:
                settings.write("recovery_init_sync_method = syncfs\n")

    @property
    def socket(self) -> Path:
        return self.folder / ".s.PGSQL.5432"

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """As a power cut: the server and all its processes at once."""
        os.kill(self.pid, signal.SIGSTOP)  # it starts no further ones
        children = self._children()
        for pid in [*children, self.pid]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        while any(map(_lives, children)):  # they hold the memory that a new server wants
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the server, which starts no further processes when it stands still, and
        to all its processes."""
        os.kill(self.pid, number)
        for pid in self._children():
            with suppress(ProcessLookupError):  # its session has ended
                os.kill(pid, number)

    def processes(self) -> list[int]:
        """Ids of the server's process and of all that it has started."""
        return [self.pid, *self._children()]

    def backends_of(self, url: str) -> list[int]:
        """Ids of the processes of a database's sessions."""
        with psycopg.connect(self.url()) as db:
            found = db.execute(
                "SELECT pid FROM pg_stat_activity "
                "WHERE datname = %s AND backend_type = 'client backend'",
                (psycopg.conninfo.conninfo_to_dict(url)["dbname"],),
            )
            return [pid for (pid,) in found]

    def dump(self) -> bytes:
        """What `pg_dump` writes of the database."""
        command = [str(self.programs / "pg_dump"), "--schema=hubbub", self.url()]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def restore(self, dump: bytes) -> None:
        command = [str(self.programs / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", self.url()]
        subprocess.run(command, check=True, capture_output=True, input=dump)

    def _children(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in children.split()]


def _lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A new server, gone at the end with all that is in it."""
    folder = Path(tempfile.mkdtemp(prefix="hubbub-postgres-"))
    try:
        server = PostgresServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop(signal.SIGQUIT)  # what is thrown away need not be written first
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    if postgres_programs() is None:
        sys.exit(MISSING)
