"""The agents of the quickstart in one process with a real hub."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from calculator import Calculator
from concierge import Concierge
from librarian import Librarian

from hubbub import Agent
from hubbub.agents.launch import run_python_agent
from hubbub.config.loader import load
from hubbub.config.models import NetworkFile
from hubbub.protocol.messages import Card, Kind
from hubbub.testing.network import LocalNetwork
from tests.unit.configs.people import PATIENCE_S, Person

CONFIGS = Path(__file__).parents[3] / "configs"


class Village:
    """The network of the quickstart, with the agents that a test starts."""

    def __init__(self, network: LocalNetwork, tasks: asyncio.TaskGroup):
        self._network, self._tasks = network, tasks
        self.running: dict[str, asyncio.Task[None]] = {}
        self._committed = asyncio.Event()
        network.hub.listen(lambda entries: self._committed.set())

    async def start(self, name: str, agent: Agent) -> None:
        """Run the agent with its card and settings from the YAML."""
        config = self._network.file.agents[name]
        client = await self._network.join(name, card=config.card, turns=True)
        running = run_python_agent(agent, client, config)
        self.running[name] = self._tasks.create_task(running, name=name)

    async def thread_exists(self, thread_id: str) -> None:
        """Wait for the first message in the thread."""
        async with asyncio.timeout(PATIENCE_S):
            while self._network.hub.kernel.state.threads.get(thread_id) is None:
                self._committed.clear()
                await self._committed.wait()

    async def person(self, name: str, kind: Kind = "human", card: Card | None = None) -> Person:
        """A participant controlled by the test."""
        return Person(await self._network.join(name, kind, card=card))


@cache
def _quickstart() -> NetworkFile:
    return load(CONFIGS / "quickstart.yaml", environ={}).file


@contextlib.asynccontextmanager
async def _village(agents: Sequence[tuple[str, Agent]]) -> AsyncIterator[Village]:
    async with LocalNetwork(_quickstart()) as network, asyncio.TaskGroup() as tasks:
        village = Village(network, tasks)
        for name, agent in agents:
            await village.start(name, agent)
        yield village
        for task in village.running.values():
            task.cancel()


@pytest.fixture
async def village() -> AsyncIterator[Village]:
    """With all three agents."""
    agents: list[tuple[str, Agent]] = [
        ("calculator", Calculator()),
        ("librarian", Librarian()),
        ("concierge", Concierge()),
    ]
    async with _village(agents) as running:
        yield running


@pytest.fixture
async def empty_village() -> AsyncIterator[Village]:
    """Without agents."""
    async with _village([]) as running:
        yield running


@pytest.fixture
async def lonely_concierge() -> AsyncIterator[Village]:
    """With only the concierge."""
    async with _village([("concierge", Concierge(away_s=0.05))]) as running:
        yield running
