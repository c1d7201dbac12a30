"""A private Postgres server for trying: Debian's, the one of `pgserver`, or the one on the PATH."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import psycopg

from hubbub.app.lifeline import end_with_parent
from hubbub.errors import UserError

__all__ = ["PostgresServer", "postgres_programs"]

MISSING = (
    "Postgres is not installed on this machine: install it (Debian: apt install postgresql; or pip "
    "install pgserver)"
)
DEBIAN = Path("/usr/lib/postgresql")
MOST_SESSIONS = 500
_AGAIN_S = 0.02


def postgres_programs() -> Path | None:
    """The folder with the newest `initdb` and `postgres`; None if there is none."""
    packaged = sorted(DEBIAN.glob("*/bin"), reverse=True)
    spec, on_path = find_spec("pgserver"), shutil.which("initdb")
    bundled = [Path(spec.origin).parent / "pginstall" / "bin"] if spec and spec.origin else []
    folders = [*packaged, *([Path(on_path).resolve().parent] if on_path else []), *bundled]
    return next((each for each in folders if (each / "initdb").exists()), None)


class PostgresServer:
    """A server on a Unix socket in its own folder; it does not listen on TCP."""

    initdb_options: Sequence[str] = ()

    def __init__(self, folder: Path, *, tied: bool = False):
        """Create its database in `folder`; if `tied`, it ends with the thread that starts it.
        Raises `UserError` if Postgres is not installed."""
        programs = postgres_programs()
        if programs is None:
            raise UserError(MISSING)
        self.programs, self.folder, self._tied = programs, folder, tied
        self._process: subprocess.Popen[bytes] | None = None
        # Postgres refuses to run as root.
        self._user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(folder, self._user, -1)
        result = subprocess.run(
            [programs / "initdb", "-D", folder / "data", "--auth=trust", "--username=hubbub",
             "--encoding=UTF8", "--locale=C", *self.initdb_options],
            check=False,
            capture_output=True,
            user=self._user,
        )  # fmt: skip
        if result.returncode:
            raise UserError(f"{programs / 'initdb'} failed: {result.stderr.decode().strip()}")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://hubbub@/{database}?host={self.folder}"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it was started"
        return self._process

    def start(self) -> None:
        """Start it and wait until it accepts connections. Raises `UserError` if it fails."""
        settings = (
            "listen_addresses=",
            f"unix_socket_directories={self.folder}",
            f"max_connections={MOST_SESSIONS}",
        )
        options = [part for setting in settings for part in ("-c", setting)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.folder / "data", *options],
                stdout=log,
                stderr=log,
                user=self._user,
                start_new_session=True,  # so that Ctrl-C does not reach it
                preexec_fn=end_with_parent if self._tied else None,
            )
        while not self.answers():
            if self._process.poll() is not None:
                raise UserError(f"Postgres failed to start: {(self.folder / 'log').read_text()}")
            time.sleep(_AGAIN_S)

    def answers(self) -> bool:
        """Whether it accepts connections."""
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def new_database(self, name: str) -> str:
        """Create an empty database; returns its URL."""
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url(name)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it and end its sessions. SIGQUIT leaves unwritten data for recovery at the next
        start."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait()
