"""An agent in its own process, started as by `hubbub agents run`, that can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import JsonValue

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.frames import Ready, Signal
from hubbub.protocol.operations import Participants
from hubbub.testing.model_server import ModelServer
from tests.e2e.support.forked import DEADLINE_S, Forked, hubbub
from tests.e2e.support.hubs import HubProcess

__all__ = ["AgentProcess", "all_present", "llm_config", "running_agent"]


class AgentProcess:
    """`hubbub agents run ARGUMENTS`, which can be restarted."""

    def __init__(self, folder: Path, *arguments: str):
        self._folder, self._arguments = folder, arguments
        self._process: Forked | None = None

    async def start(self) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HUBBUB_")}
        environment["HUBBUB_STATE_DIR"] = str(self._folder)
        output, command = self._folder / "agent.txt", ("agents", "run", *self._arguments)
        self._process = Forked(self._folder, output, environment, hubbub, *command)

    async def kill(self) -> None:
        """kill -9 if it is running."""
        assert self._process is not None, "not started"
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def ended(self) -> int:
        """Waits for it to exit; returns the exit code."""
        assert self._process is not None, "not started"
        return await self._process.wait()

    def output(self) -> str:
        """Everything its processes have written so far."""
        return (self._folder / "agent.txt").read_text(errors="replace")


@asynccontextmanager
async def running_agent(folder: Path, arguments: Sequence[str]) -> AsyncIterator[AgentProcess]:
    """A started agent process, killed when the context ends."""
    agent = AgentProcess(folder, *arguments)
    await agent.start()
    try:
        yield agent
    finally:
        await agent.kill()


async def all_present(url: str, *agents: str) -> None:
    """Waits until these agents have joined the open network at `url`."""
    async with (
        asyncio.timeout(DEADLINE_S),
        Client(WebSocketTransport(url), "watcher", "human") as watcher,
    ):
        async for item in watcher.events():
            if isinstance(item, Ready | Signal):  # presence changes are signals
                answer = Participants.model_validate(await watcher.call("list_participants"))
                if {p.id for p in answer.participants if p.present} >= set(agents):
                    return


def llm_config(
    folder: Path, hub: HubProcess, model: ModelServer, name: str, agent: Mapping[str, JsonValue]
) -> list[str]:
    """Writes the config of an agent with this model; returns the arguments that start it."""
    config: JsonValue = {
        "network": {"listen": hub.url.removeprefix("ws://"), "auth": "open"},
        "models": {"default": {"model": "scripted", "base_url": model.base_url, "api_key": "any"}},
        "agents": {name: dict(agent)},
    }
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(config))
    return ["--config", str(path), "--name", name]
