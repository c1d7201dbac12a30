"""A hub process that can be killed and restarted on the same database and port."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import JsonValue

from hubbub.client import Backoff, ClientOptions
from tests.e2e.support.forked import DEADLINE_S, FORKS, Forked
from tests.e2e.support.hub_process import serve

__all__ = ["DEADLINE_S", "NO_LIMIT", "QUICK", "ROOT", "UNBOUND", "HubProcess", "running_hub"]

ROOT = Path(__file__).parents[3]
NO_LIMIT: Mapping[str, JsonValue] = {"calls_per_second": 1_000_000, "burst": 1_000_000}
"""The limiter counts, but never stops a test's load."""
UNBOUND: Mapping[str, JsonValue] = {
    "wake": {"loop_limit": {"enabled": False}},
    "breaker": {"enabled": False},
}
"""For agents that wake each other for a long time."""
QUICK = ClientOptions(backoff=Backoff(first_s=0.02, most_s=0.1))
"""Clients reconnect at once."""


class HubProcess:
    """One network on one database file. `port` is the same from the first start."""

    def __init__(
        self,
        folder: Path,
        *,
        limits: Mapping[str, JsonValue] = NO_LIMIT,
        channels: Sequence[str] = (),
        prefix: Sequence[str] = (),
        network: Mapping[str, JsonValue] = UNBOUND,
        mods: Sequence[JsonValue] = (),
    ):
        """`prefix` is a command that runs the hub, such as strace; `network` extends its config."""
        self.database = folder / "hub.db"
        self.port = 0
        self.listening = asyncio.Event()
        """Set from a start until a signal is sent."""
        self._folder, self._limits, self._prefix = folder, dict(limits), prefix
        self._network, self._mods = dict(network), list(mods)
        self._channels: JsonValue = {name: {"members": "all"} for name in channels}
        self._process: Process | Forked | None = None
        self._pid = 0

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Returns once it is listening."""
        output, config = self._folder / "stderr.txt", str(self._config())
        if self._prefix:
            address = await self._start_with_prefix(output, config)
        else:
            ours, its = FORKS.Pipe(duplex=False)
            self._process = Forked(ROOT, output, os.environ, serve, config, its)
            its.close()
            try:
                address = await asyncio.wait_for(asyncio.to_thread(ours.recv), DEADLINE_S)
            except EOFError:
                raise AssertionError(f"the hub did not start: {self.stderr()}") from None
            ours.close()
        self.port, self._pid = address["port"], address["pid"]
        self.listening.set()

    async def _start_with_prefix(self, output: Path, config: str) -> dict[str, int]:
        command = [*self._prefix, sys.executable, "-m", "tests.e2e.support.hub_process", config]
        with output.open("ab") as stderr:
            self._process = process = await asyncio.create_subprocess_exec(
                *command, stdout=PIPE, stderr=stderr, cwd=ROOT
            )
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), DEADLINE_S)
        assert line, f"the hub did not start: {self.stderr()}"
        address: dict[str, int] = json.loads(line)
        return address

    async def kill(self) -> None:
        """kill -9."""
        await self._end(signal.SIGKILL)

    async def terminate(self) -> int:
        """SIGTERM; returns the exit code."""
        return await self._end(signal.SIGTERM)

    async def stop(self) -> None:
        """Kills it if it is running."""
        if self._process is not None and self.listening.is_set():
            await self.kill()

    async def _end(self, how: signal.Signals) -> int:
        process = self._process
        assert process is not None, "not started"
        self.listening.clear()
        os.kill(self._pid, how)
        return await asyncio.wait_for(process.wait(), DEADLINE_S)

    def rss_kib(self) -> int:
        """Resident memory."""
        return self._memory("VmRSS")

    def peak_kib(self) -> int:
        """Peak resident memory."""
        return self._memory("VmHWM")

    def _memory(self, field: str) -> int:
        status = Path(f"/proc/{self._pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(f"{field}:"))
        return int(line.split()[1])

    def stderr(self) -> str:
        """Everything its processes have written to stderr so far."""
        return (self._folder / "stderr.txt").read_text(errors="replace")

    def _config(self) -> Path:
        path = self._folder / "network.yaml"
        network = {
            "name": "test",
            "listen": f"127.0.0.1:{self.port}",
            "store": f"sqlite:{self.database}",
            "auth": "open",
            "limits": self._limits,
            **self._network,
        }
        # JSON is YAML.
        config = {"network": network, "channels": self._channels, "mods": self._mods}
        path.write_text(json.dumps(config))
        return path


@asynccontextmanager
async def running_hub(
    folder: Path,
    *,
    limits: Mapping[str, JsonValue] = NO_LIMIT,
    channels: Sequence[str] = (),
    prefix: Sequence[str] = (),
    mods: Sequence[JsonValue] = (),
    network: Mapping[str, JsonValue] = UNBOUND,
) -> AsyncIterator[HubProcess]:
    """A started hub process. If it is still running at the end, it must stop cleanly."""
    hub = HubProcess(
        folder, limits=limits, channels=channels, prefix=prefix, network=network, mods=mods
    )
    await hub.start()
    try:
        yield hub
        if hub.listening.is_set():
            assert await hub.terminate() == 0
        assert "Traceback" not in hub.stderr(), hub.stderr()
    finally:
        await hub.stop()
