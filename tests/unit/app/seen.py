"""A collector of lifecycle events that tests can wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hubbub.app.lifecycle import AgentOutput, AgentStarted, LifecycleEvent

__all__ = ["WITHIN_S", "Seen"]

WITHIN_S = 100.0


class Seen:
    def __init__(self) -> None:
        self.all: list[LifecycleEvent] = []
        self._changed = asyncio.Event()

    def __call__(self, event: LifecycleEvent) -> None:
        self.all.append(event)
        self._changed.set()

    async def until(self, condition: Callable[[Sequence[LifecycleEvent]], bool]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not condition(self.all):
                self._changed.clear()
                await self._changed.wait()

    def lines(self, stream: str = "stdout") -> list[str]:
        return [e.line for e in self.all if isinstance(e, AgentOutput) and e.stream == stream]

    def pids(self) -> list[int]:
        return [e.pid for e in self.all if isinstance(e, AgentStarted)]
