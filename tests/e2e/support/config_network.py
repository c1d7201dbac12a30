"""Networks from a config: `hubbub up` as a user runs it, or the same parts in this process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from hubbub.app.agents import from_config, run_job
from hubbub.app.lifecycle import LifecycleEvent, NetworkUp
from hubbub.app.lifeline import RUN, TOKENS, URL
from hubbub.app.network import serve
from hubbub.client import Client, RunFile, WebSocketTransport
from hubbub.config.loader import load
from tests.e2e.support.agents import all_present
from tests.unit.configs.people import Person

__all__ = [
    "ROOT",
    "ConfigNetwork",
    "Network",
    "environment",
    "run_config",
    "run_here",
    "running_up",
]

ROOT = Path(__file__).parents[3]
DEADLINE_S = 100.0
"""How long a network can take to start or stop before the test fails."""
_ADDRESS = re.compile(r"ws://127\.0\.0\.1:[1-9]\d*")
_OURS = ("OPENAI_", "HUBBUB_")


class Network:
    """A running network that people can join."""

    def __init__(self, folder: Path, stack: AsyncExitStack):
        self._folder, self._stack = folder, stack
        self.output: list[str] = []
        """The lines it has printed."""
        self.url = ""

    def run_file(self) -> RunFile:
        (path,) = (self._folder / "run").glob("*")
        return RunFile.model_validate_json(path.read_bytes())

    async def join(self, name: str) -> Person:
        """A person who joins with the token that `hubbub chat` would use."""
        token = self.run_file().tokens.get(name)
        client = Client(WebSocketTransport(self.url), name, "human", token=token)
        return Person(await self._stack.enter_async_context(client))

    async def left(self) -> None:
        """Disconnects all people."""
        await self._stack.aclose()


class ConfigNetwork(Network):
    """A running `hubbub up`."""

    def __init__(self, process: Process, folder: Path, stack: AsyncExitStack):
        super().__init__(folder, stack)
        self.process = process
        self._changed = asyncio.Condition()
        self._closed = False
        """Whether it has printed its last line."""
        self._reading: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Returns once the hub is listening."""
        self._reading = asyncio.create_task(self._read())
        address = _ADDRESS.search(await self.shows(_ADDRESS))
        assert address is not None
        self.url = address[0]

    async def shows(self, pattern: re.Pattern[str] | str) -> str:
        """Waits for a line of output that matches `pattern`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(DEADLINE_S), self._changed:
                await self._changed.wait_for(lambda: self._closed or self._match(pattern))
        line = self._match(pattern)
        shown = "\n".join(self.output)
        assert line is not None, f"{pattern!r} does not match any line of:\n{shown}"
        return line

    def _match(self, pattern: re.Pattern[str] | str) -> str | None:
        return next((line for line in self.output if re.search(pattern, line)), None)

    async def stop(self) -> int:
        """Sends Ctrl-C; returns the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(DEADLINE_S):
            code = await self.process.wait()
            if self._reading is not None:
                await self._reading
        return code

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            async with self._changed:
                self.output.append(line.decode().rstrip())
                self._changed.notify_all()
        async with self._changed:
            self._closed = True
            self._changed.notify_all()


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a process, without this machine's settings for models and networks."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    own = {
        "HUBBUB_LISTEN": "127.0.0.1:0",
        "HUBBUB_STORE": f"sqlite:{folder / 'network.db'}",
        "HUBBUB_STATE_DIR": str(folder),
        "PYTHONUNBUFFERED": "1",
    }
    return {**inherited, **own, **more}


@asynccontextmanager
async def running_up(
    config: Path, folder: Path, variables: Mapping[str, str] | None = None
) -> AsyncIterator[ConfigNetwork]:
    """`hubbub up CONFIG`, killed at the end if it is still running."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hubbub", "up", str(config),
        stdout=PIPE, stderr=STDOUT, cwd=folder, env=environment(folder, **(variables or {})),
    )  # fmt: skip
    try:
        async with AsyncExitStack() as people:
            network = ConfigNetwork(process, folder, people)
            await network.begin()
            yield network
    finally:
        if process.returncode is None:
            process.kill()  # its agents end with it
        await process.wait()


@asynccontextmanager
async def run_config(
    config: str, folder: Path, variables: Mapping[str, str] | None = None
) -> AsyncIterator[ConfigNetwork]:
    """The network of `configs/<config>.yaml`, which must stop cleanly."""
    path = ROOT / "configs" / f"{config}.yaml"
    async with running_up(path, folder, variables) as network:
        yield network
        await network.left()
        assert await network.stop() == 0, "\n".join(network.output)


@asynccontextmanager
async def run_here(
    config: Path, folder: Path, variables: Mapping[str, str] | None = None
) -> AsyncIterator[Network]:
    """The network of a config with its hub, sockets, log and agents, all in this process.

    All agents have joined when the context is entered.
    """
    environ = environment(folder, **(variables or {}))
    stop, up = asyncio.Event(), asyncio.Event()
    async with AsyncExitStack() as people:
        network = Network(folder, people)

        def report(event: LifecycleEvent) -> None:
            if isinstance(event, NetworkUp):
                network.url = event.url
                up.set()

        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("HUBBUB_STATE_DIR", str(folder))
            place = {"listen": "127.0.0.1:0", "store": environ["HUBBUB_STORE"]}
            loaded = load(config, environ=environ, overrides=place)
            serving = asyncio.create_task(serve(loaded, report, stop=stop, with_agents=False))
            await asyncio.wait_for(up.wait(), DEADLINE_S)
            tokens = json.dumps(network.run_file().tokens)
            environ = {**environ, URL: network.url, RUN: "here", TOKENS: tokens}
            agents = asyncio.create_task(run_job(from_config(config, [], None, None, environ)))
            try:
                if loaded.file.agents:
                    await all_present(network.url, *loaded.file.agents)
                yield network
                assert not (loaded.file.agents and agents.done()), agents
            finally:
                await people.aclose()
                agents.cancel()
                with suppress(asyncio.CancelledError):
                    await agents
                stop.set()
                await asyncio.wait_for(serving, DEADLINE_S)
