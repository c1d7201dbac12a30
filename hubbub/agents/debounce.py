"""Waiting a moment for more: an agent with nothing to do in a thread need not start at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set

from hubbub.agents.inbox import by_person
from hubbub.protocol.messages import Message

__all__ = ["Debounce"]


class Debounce:
    """The threads that wait. `over` is called when one of them has waited for `seconds`, which
    count from its first wake: who goes on talking is heard no later."""

    def __init__(self, seconds: float, over: Callable[[], object]):
        self._seconds, self._over = seconds, over
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def held(self) -> Set[str]:
        """Threads in which no turn begins yet."""
        return self._timers.keys()

    def woken(self, message: Message) -> None:
        """This message wakes the agent in a thread where it does nothing so far."""
        thread_id = message.thread_id
        if message.type == "direct" and by_person(message):
            self.release(thread_id)  # a person who talks to the agent waits for it
        elif self._seconds and thread_id not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[thread_id] = loop.call_later(self._seconds, self._due, thread_id)

    def release(self, thread_id: str) -> None:
        """The thread waits no longer."""
        timer = self._timers.pop(thread_id, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Nothing waits any more."""
        for thread_id in list(self._timers):
            self.release(thread_id)

    def _due(self, thread_id: str) -> None:
        self.release(thread_id)
        self._over()
