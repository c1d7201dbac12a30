"""A hub in its own task, for the steps of a state machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from hubbub.clock import Clock
from hubbub.config.models import NetworkFile
from hubbub.mods.api import Mod
from hubbub.network.ports import Store
from hubbub.testing.network import LocalNetwork
from tests.interaction.peers import DEADLINE_S, Network

__all__ = ["HubLife"]

T = TypeVar("T")


class HubLife:
    """One loop with one hub. `run` takes a step from outside the loop."""

    def __init__(
        self,
        file: NetworkFile,
        store: str | Store = "sqlite::memory:",
        mods: Sequence[Mod] = (),
        clock: Clock | None = None,
    ):
        self._runner = asyncio.Runner()
        self._stop = asyncio.Event()
        self._local = LocalNetwork(file, store=store, mods=mods, clock=clock)
        self._life: asyncio.Task[None] | None = None
        self.network = self.run(self._begin())

    def run(self, work: Awaitable[T]) -> T:
        """Runs `work`, within the deadline."""

        async def bounded() -> T:
            async with asyncio.timeout(DEADLINE_S):
                return await work

        return self._runner.run(bounded())

    async def _begin(self) -> Network:
        ready: asyncio.Future[Network] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(ready))
        both: list[asyncio.Future[Any]] = [ready, self._life]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if self._life.done():
            self._life.result()  # raises if the hub failed to start
        return ready.result()

    async def _live(self, ready: asyncio.Future[Network]) -> None:
        async with self._local as local:
            ready.set_result(Network(local))
            await self._stop.wait()

    def end(self) -> None:
        """Stops the hub; raises its error if it failed."""

        async def stop() -> None:
            self._stop.set()
            assert self._life is not None
            await self._life

        try:
            self.run(stop())
        finally:
            self._runner.close()
