"""A Postgres of its own for tests: from Debian's package, or whatever `postgres` is on the PATH."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

__all__ = ["PostgresServer", "postgres_programs", "running_postgres"]

_MISSING = (
    "these tests start a Postgres of their own, and there is none: install one "
    "(Debian: apt install postgresql)"
)


def postgres_programs() -> Path | None:
    """The folder with `initdb` and `postgres`, the newest first; None: there is none."""
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    folders = [*packaged, *([Path(on_path).resolve().parent] if on_path else [])]
    return next((each for each in folders if (each / "initdb").exists()), None)


class PostgresServer:
    """A server on a socket in its own folder; nothing listens on the network."""

    def __init__(self, programs: Path, folder: Path):
        self._programs, self._folder = programs, folder
        self._process: subprocess.Popen[bytes] | None = None
        # Postgres does not run as root.
        self._user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(folder, self._user, -1)
        self._run("initdb", "--auth=trust", "--username=hubbub", "--encoding=UTF8", "--locale=C")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://hubbub@/{database}?host={self._folder}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it serves."""
        options = ("listen_addresses=", f"unix_socket_directories={self._folder}")
        settings = [part for option in options for part in ("-c", option)]
        log = (self._folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._folder / "data", *settings],
                stdout=log,
                stderr=log,
                preexec_fn=self._as_user(),
            )
        self._wait_until_it_serves()

    def _wait_until_it_serves(self) -> None:
        while True:
            assert self._process is not None
            assert self._process.poll() is None, (self._folder / "log").read_text()
            if self.answers():
                return

    def kill(self) -> None:
        """As a power cut: the server and all its processes at once."""
        assert self._process is not None
        os.kill(self.pid, signal.SIGSTOP)  # it starts no further ones
        children = self._children()
        for pid in [*children, self.pid]:
            os.kill(pid, signal.SIGKILL)
        self._process.wait()
        while any(map(_lives, children)):  # they hold the memory that a new server wants
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the server and to all its processes."""
        for pid in [self.pid, *self._children()]:
            os.kill(pid, number)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()

    def answers(self) -> bool:
        """Whether it lets somebody in within seconds."""
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def new_database(self, name: str) -> str:
        """The URL of an empty database."""
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def dump(self) -> bytes:
        """What `pg_dump` writes of the database."""
        command = [str(self._programs / "pg_dump"), "--schema=hubbub", self.url()]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def restore(self, dump: bytes) -> None:
        command = [str(self._programs / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", self.url()]
        subprocess.run(command, check=True, capture_output=True, input=dump)

    def _children(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def _run(self, program: str, *options: str) -> None:
        subprocess.run(
            [self._programs / program, "-D", self._folder / "data", *options],
            check=True,
            capture_output=True,
            preexec_fn=self._as_user(),
        )

    def _as_user(self) -> Callable[[], None] | None:
        user = self._user
        return None if user is None else lambda: os.setuid(user)


def _lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A new server, gone at the end with all that is in it."""
    programs = postgres_programs()
    assert programs is not None, _MISSING
    folder = Path(tempfile.mkdtemp(prefix="hubbub-postgres-"))
    try:
        server = PostgresServer(programs, folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    if postgres_programs() is None:
        sys.exit(_MISSING)
