"""Wakes that somebody in the agent waits for, and that start no turns of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from hubbub.agents.brain import Brain
from hubbub.agents.inbox import Woken
from hubbub.agents.settling import AWAITED

__all__ = ["Claims"]


class Claims:
    """What the brain claims. `settle` is given each wake that is somebody's, with a reason, `news`
    each that proves to be nobody's; `spawn` runs what waits for the verdict.
    """

    def __init__(
        self,
        brain: Brain,
        spawn: Callable[[Coroutine[object, object, None]], object],
        settle: Callable[[Woken, str], None],
        news: Callable[[Woken], None],
    ):
        self._brain, self._spawn = brain, spawn
        self._settle, self._news = settle, news

    def take(self, woken: Woken) -> bool:
        """Whether the wake starts no turn, at least for now."""
        verdict = self._brain.claims(woken.message)
        if verdict is not None:
            self._spawn(self._judge(verdict, woken))
        return verdict is not None

    async def _judge(self, verdict: asyncio.Future[bool], woken: Woken) -> None:
        if await verdict:
            self._settle(woken, AWAITED)
        else:
            self._news(woken)
