"""An agent in a process of its own, as `hubbub agent run` starts it, that may be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.frames import Ready, Signal
from hubbub.protocol.operations import Participants
from tests.e2e.support.hubs import DEADLINE_S, ROOT

__all__ = ["AgentProcess", "all_present", "running_agent"]


class AgentProcess:
    """`hubbub agent run ARGUMENTS`, again and again."""

    def __init__(self, folder: Path, *arguments: str):
        self._folder, self._arguments = folder, arguments
        self._process: Process | None = None

    async def start(self) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HUBBUB_")}
        environment |= {"HUBBUB_STATE_DIR": str(self._folder), "PYTHONPATH": str(ROOT)}
        with (self._folder / "agent.txt").open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "hubbub", "agent", "run", *self._arguments,
                stdout=output, stderr=output, cwd=self._folder, env=environment,
            )  # fmt: skip

    async def kill(self) -> None:
        """kill -9, if it runs."""
        process = self._process
        assert process is not None, "started before"
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await asyncio.wait_for(process.wait(), DEADLINE_S)

    async def ended(self) -> int:
        """Its exit code, once it has ended by itself."""
        assert self._process is not None, "started before"
        return await asyncio.wait_for(self._process.wait(), DEADLINE_S)

    def output(self) -> str:
        """All that its processes have written so far."""
        return (self._folder / "agent.txt").read_text(errors="replace")


@asynccontextmanager
async def running_agent(folder: Path, arguments: Sequence[str]) -> AsyncIterator[AgentProcess]:
    """A started agent process, ended with the context."""
    agent = AgentProcess(folder, *arguments)
    await agent.start()
    try:
        yield agent
    finally:
        await agent.kill()


async def all_present(url: str, *agents: str) -> None:
    """Wait until these agents have joined the open network at `url`."""
    async with (
        asyncio.timeout(DEADLINE_S),
        Client(WebSocketTransport(url), "watcher", "human") as watcher,
    ):
        async for item in watcher.events():
            if isinstance(item, Ready | Signal):  # comings and goings are signals
                found = Participants.model_validate(await watcher.call("list_participants"))
                if {p.id for p in found.participants if p.present} >= set(agents):
                    return
