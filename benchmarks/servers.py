"""Server processes: started on a free port, watched through /proc, ended without a trace."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

__all__ = ["Server", "allow_many_sockets", "cpu_seconds", "rss_kib", "start"]

START_S = 60.0
STOP_S = 20.0
_TICK = os.sysconf("SC_CLK_TCK")


class Server:
    """A running server process."""

    def __init__(self, process: Process, port: int):
        self.port = port
        self.pid = process.pid
        self._process = process

    def cpu_s(self) -> float:
        """User and system time of all its threads so far, in seconds (in steps of 10 ms)."""
        return cpu_seconds(Path(f"/proc/{self.pid}/stat").read_text())

    def rss_kib(self) -> int:
        """Resident memory in KiB."""
        return rss_kib(Path(f"/proc/{self.pid}/status").read_text())

    async def stop(self) -> None:
        """Ask it to end; kill it if it does not."""
        if self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


def cpu_seconds(stat: str) -> float:
    """utime + stime of a /proc/<pid>/stat line; the name in it may contain anything."""
    values = stat.rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / _TICK


def rss_kib(status: str) -> int:
    """VmRSS of a /proc/<pid>/status text."""
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


@asynccontextmanager
async def start(module: str, *arguments: str) -> AsyncIterator[Server]:
    """`python -m module arguments…` as a server; it prints `{"port": n}` when it listens.

    Raises RuntimeError if it ends or keeps silent instead. What it writes to stderr is shown.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdout=PIPE
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START_S)
        if not line:
            raise RuntimeError(f"{module} ended with {await process.wait()} before it listened")
        server = Server(process, json.loads(line)["port"])
        yield server
    finally:
        await Server(process, 0).stop()


def allow_many_sockets() -> None:
    """Raise the limit of open files as far as the system allows; children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
