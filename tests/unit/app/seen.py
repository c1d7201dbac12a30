"""What is reported, for tests to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hubbub.app.lifecycle import AgentOutput, AgentStarted, LifecycleEvent

__all__ = ["WITHIN_S", "Seen"]

WITHIN_S = 100.0


class Seen:
    """Collects what is reported and lets a test wait for it."""

    def __init__(self) -> None:
        self.all: list[LifecycleEvent] = []
        self._news = asyncio.Event()

    def __call__(self, event: LifecycleEvent) -> None:
        self.all.append(event)
        self._news.set()

    async def until(self, condition: Callable[[Sequence[LifecycleEvent]], bool]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not condition(self.all):
                self._news.clear()
                await self._news.wait()

    def lines(self, stream: str = "stdout") -> list[str]:
        return [h.line for h in self.all if isinstance(h, AgentOutput) and h.stream == stream]

    def pids(self) -> list[int]:
        return [h.pid for h in self.all if isinstance(h, AgentStarted)]
