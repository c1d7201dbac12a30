"""Named places where answers wait until a test lets them pass: delays without time."""

from __future__ import annotations

import asyncio
from collections import defaultdict

__all__ = ["Gates"]


class Gates:
    """Every name is a closed gate until it is released; then it stays open."""

    def __init__(self) -> None:
        self._came: defaultdict[str, int] = defaultdict(int)
        self._open: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._news = asyncio.Condition()

    async def pass_through(self, name: str | None) -> None:
        """Returns when the gate is open; at once when there is none."""
        if name is None:
            return
        async with self._news:
            self._came[name] += 1
            self._news.notify_all()
        await self._open[name].wait()

    async def held(self, name: str, count: int) -> None:
        """Returns when `count` answers in all have come to the gate."""
        async with self._news:
            await self._news.wait_for(lambda: self._came[name] >= count)

    def release(self, name: str) -> None:
        self._open[name].set()
