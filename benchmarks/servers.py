"""Server processes: started on a free port, watched through the kernel, ended without a trace."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

__all__ = [
    "Server",
    "allow_many_sockets",
    "cpu_seconds",
    "rss_kib",
    "start",
    "start_gateway",
    "start_network",
]

START_S = 600.0  # on a machine that does much else
STOP_S = 20.0
_ADDRESS = re.compile(rb"ws://127\.0\.0\.1:(\d+)")


class Server:
    """A running server process."""

    def __init__(self, process: Process, port: int, *others: int):
        self.port, self.ports = port, (port, *others)
        self.pid = process.pid
        self._process = process

    def cpu_s(self) -> float:
        """User and system time of all its threads so far, in seconds."""
        return cpu_seconds(self.pid)

    def waits(self) -> bool:
        """Whether none of its threads runs, or would run if there were a processor for it."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/stat")
        return not any(task.read_text().rpartition(")")[2].split()[0] == "R" for task in tasks)

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


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, to the nanosecond: what `/proc` tells comes in steps of
    10 ms. The clock's id is made as clock_getcpuclockid(3) makes it on Linux.
    """
    return time.clock_gettime(~pid << 3 | 2)


def rss_kib(status: str) -> int:
    """VmRSS of a /proc/<pid>/status text."""
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


@asynccontextmanager
async def start(module: str, *arguments: str) -> AsyncIterator[Server]:
    """`python -m module arguments…` as a server; it prints `{"ports": [n, ...]}` when it listens.

    Raises RuntimeError if it ends or keeps silent instead. What it writes to stderr is shown.
    """
    async with _running(module, *arguments) as (process, output):
        line = await asyncio.wait_for(output.readline(), START_S)
        if not line:
            raise RuntimeError(f"{module} ended with {await process.wait()} before it listened")
        yield Server(process, *json.loads(line)["ports"])


@asynccontextmanager
async def start_network(config: Path) -> AsyncIterator[Server]:
    """`hubbub up` as people start it, its view read from a pipe; without the config's agents.

    Raises RuntimeError if it ends instead. What it writes to stderr is shown.
    """
    arguments = ("up", str(config), "--no-agents", "--no-browser")
    state = {**os.environ, "HUBBUB_STATE_DIR": str(config.parent)}
    async with _running("hubbub", *arguments, env=state) as (process, output):
        port = await asyncio.wait_for(_address(output), START_S)
        if port is None:
            raise RuntimeError(f"hubbub up ended with {await process.wait()} before it listened")
        reading = asyncio.create_task(_read_away(output))
        try:
            yield Server(process, port)
        finally:
            await Server(process, port).stop()
            reading.cancel()


@asynccontextmanager
async def start_gateway(hub_port: int, token: str) -> AsyncIterator[Server]:
    """`hubbub gateway` in front of the hub at a port of this machine."""
    hubs, env = f"127.0.0.1:{hub_port}", {**os.environ, "HUBBUB_GATEWAY_TOKEN": token}
    arguments = ("gateway", "--hubs", hubs, "--listen", "127.0.0.1:0", "--json")
    async with _running("hubbub", *arguments, env=env) as (process, output):
        await asyncio.wait_for(output.readline(), START_S)  # it looks for the hub
        port = await asyncio.wait_for(_address(output), START_S)
        if port is None:
            raise RuntimeError(f"hubbub gateway ended with {await process.wait()}")
        yield Server(process, port)


@asynccontextmanager
async def _running(
    module: str, *arguments: str, env: dict[str, str] | None = None
) -> AsyncIterator[tuple[Process, asyncio.StreamReader]]:
    """A process of this Python, and what it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdout=PIPE, env=env
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout
    finally:
        await Server(process, 0).stop()


async def _address(output: asyncio.StreamReader) -> int | None:
    """The port that the banner tells; None if there is no banner."""
    async for line in output:
        if found := _ADDRESS.search(line):
            return int(found[1])
    return None


async def _read_away(output: asyncio.StreamReader) -> None:
    while await output.read(1 << 16):
        pass


def allow_many_sockets() -> None:
    """Raise the limit of open files as far as the system allows; children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
