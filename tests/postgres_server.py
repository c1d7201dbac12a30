"""A Postgres server for tests, which can be killed, paused, dumped and restored."""

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
    """A server with operations for tests."""

    initdb_options = ("--no-sync",)

    def __init__(self, folder: Path):
        super().__init__(folder)
        if sys.platform == "linux":
            # Recovery would otherwise sync each of a database's 300 files.
            with (folder / "data" / "postgresql.conf").open("a") as settings:
                settings.write("recovery_init_sync_method = syncfs\n")

    @property
    def socket(self) -> Path:
        return self.folder / ".s.PGSQL.5432"

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """Kills the server and all its processes at once, as a power cut does."""
        os.kill(self.pid, signal.SIGSTOP)  # so that it starts no further ones
        children = self._children()
        for pid in [*children, self.pid]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        while any(map(_is_running, children)):  # they hold the memory that a new server needs
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the server first, which starts no further processes while it is
        stopped, and then to all its processes."""
        os.kill(self.pid, number)
        for pid in self._children():
            with suppress(ProcessLookupError):  # the session has ended
                os.kill(pid, number)

    def processes(self) -> list[int]:
        """Ids of the server's process and of all its children."""
        return [self.pid, *self._children()]

    def backends_of(self, url: str) -> list[int]:
        """Ids of the processes of a database's sessions."""
        with psycopg.connect(self.url()) as db:
            rows = db.execute(
                "SELECT pid FROM pg_stat_activity "
                "WHERE datname = %s AND backend_type = 'client backend'",
                (psycopg.conninfo.conninfo_to_dict(url)["dbname"],),
            )
            return [pid for (pid,) in rows]

    def dump(self) -> bytes:
        """The output of `pg_dump`."""
        command = [str(self.programs / "pg_dump"), "--schema=hubbub", self.url()]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def restore(self, dump: bytes) -> None:
        command = [str(self.programs / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", self.url()]
        subprocess.run(command, check=True, capture_output=True, input=dump)

    def _children(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in children.split()]


def _is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A new server, deleted with its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="hubbub-postgres-"))
    try:
        server = PostgresServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop(signal.SIGQUIT)  # without writing the data, which is deleted
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    if postgres_programs() is None:
        sys.exit(MISSING)
