"""What agents are doing at the moment, by what they said last. Pure.

Signals are never stored, so whoever joins would see an agent at rest that has been at work for a
minute. What an agent says of its activity in a thread is therefore kept until it says `idle` there,
or goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue
from pydantic_core import to_json

__all__ = ["Activities", "Activity", "Change"]

MOST_THREADS = 64
"""Threads of one agent that are remembered; of more, those that it spoke of last."""
MOST_BYTES = 1024
"""Of what an agent says of one activity, as JSON; of more, only the state is remembered."""

Change = Literal["working", "idle"]


@dataclass(frozen=True, slots=True)
class Activity:
    """What an agent does in a thread, as it said it at `since` (monotonic seconds)."""

    agent: str
    thread_id: str
    data: JsonValue
    since: float


class Activities:
    """The last `activity` of each agent in each thread that is not `idle`."""

    def __init__(self) -> None:
        self._active: dict[str, dict[str, Activity]] = {}
        self._since: dict[str, float] = {}

    def note(self, agent: str, thread_id: str, data: JsonValue, now: float) -> Change | None:
        """An agent says what it does in a thread.

        Returns whether it has begun to work, or has come to rest altogether; None if neither.
        """
        state = _state(data)
        threads = self._active.setdefault(agent, {})
        threads.pop(thread_id, None)
        if state != "idle":
            small = len(to_json(data)) <= MOST_BYTES
            told: JsonValue = data if small else {"state": state[:MOST_BYTES]}
            threads[thread_id] = Activity(agent, thread_id, told, now)
            if len(threads) > MOST_THREADS:
                del threads[next(iter(threads))]
        return self._change(agent, now)

    def clear(self, agent: str) -> Change | None:
        """The agent is gone, and whatever it did with it. Returns what `note` would."""
        self._active.pop(agent, None)
        return self._change(agent, 0.0)

    def _change(self, agent: str, now: float) -> Change | None:
        if self._active.get(agent):
            if agent in self._since:
                return None
            self._since[agent] = now
            return "working"
        self._active.pop(agent, None)
        return "idle" if self._since.pop(agent, None) is not None else None

    def working(self) -> Iterator[tuple[str, float]]:
        """Each agent that works somewhere, and since when."""
        yield from self._since.items()

    def __iter__(self) -> Iterator[Activity]:
        for threads in self._active.values():
            yield from threads.values()


def _state(data: JsonValue) -> str:
    """What the data says that the agent is at; an agent that says nothing is idle."""
    state = data.get("state") if isinstance(data, dict) else data
    if state is None or state is False or state == "":
        return "idle"
    return state if isinstance(state, str) else "working"
