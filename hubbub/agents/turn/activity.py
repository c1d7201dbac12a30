"""`activity` signals: what the agent's turns show of their state while they run.

    thinking    the model is asked, or the handler runs
    calling     tools run; `tool` names them
    waiting     for an answer; `for` names the participant, or `approval`: then the turn is parked
    idle        the turn ended, for any reason

Each signal goes to the thread of the turn and names the `turn` and its `step`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Literal

from pydantic import JsonValue

from hubbub.agents.inbox import TurnPlan

__all__ = ["SendActivity", "TurnActivities", "TurnActivity"]

State = Literal["thinking", "calling", "waiting"]
SendActivity = Callable[[str, JsonValue], Awaitable[None]]
"""Sends the data of an `activity` signal to a thread."""


class TurnActivity:
    """The state of one turn. With `after_s`, the first signal comes after that many seconds and
    later ones no more often, so a quick turn sends none and short-lived states are skipped.
    """

    def __init__(self, send: SendActivity, plan: TurnPlan, after_s: float = 0.0):
        self._send, self._plan, self._after_s = send, plan, after_s
        self._state: dict[str, JsonValue] = {"state": "thinking"}
        self._step = 1
        self._sent: dict[str, JsonValue] | None = None
        self._over = self.parked = False
        self._awaited: list[str] = []
        self._changed = asyncio.Event()

    @property
    def thread_id(self) -> str:
        return self._plan.thread_id

    async def show(self, state: State, step: int, tools: Iterable[str] = ()) -> None:
        """Show this state of step `step`."""
        named = ", ".join(dict.fromkeys(tools))
        self._step = step
        await self._set({"state": state, "tool": named} if named else {"state": state})

    @contextlib.asynccontextmanager
    async def waiting(self, participant: str) -> AsyncIterator[None]:
        """A context in which the turn waits for the participant; contexts can overlap."""
        self._awaited.append(participant)
        await self._set(self._wait_or_think())
        try:
            yield
        finally:
            self._awaited.remove(participant)
            await self._set(self._wait_or_think())

    async def park(self, step: int) -> None:
        """The turn stops to wait for a person; this stays shown until it continues."""
        self._step = step
        await self._set({"state": "waiting", "for": "approval"})
        self.parked = True

    async def dropped(self) -> None:
        """The parked turn will not continue."""
        self._state, self._over = {"state": "idle"}, False
        await self._send_now()

    async def repeat(self) -> None:
        """Send the last signal again: the receivers have forgotten it."""
        if self._sent is not None:
            await self._send(self._plan.thread_id, self._sent)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The turn runs within the block. If anything was shown of it, it ends with `idle`."""
        showing = asyncio.create_task(self._show_paced()) if self._after_s else None
        try:
            yield
        finally:
            if showing is not None:
                showing.cancel()
            if self._sent is not None and not self.parked:
                self._state = {"state": "idle"}
                await self._send_now()
            self._over = True  # a task that a handler left behind has nothing to show

    def _wait_or_think(self) -> dict[str, JsonValue]:
        if not self._awaited:
            return {"state": "thinking"}
        return {"state": "waiting", "for": ", ".join(dict.fromkeys(self._awaited))}

    async def _set(self, state: dict[str, JsonValue]) -> None:
        self._state = state
        self._changed.set()
        if not self._after_s:
            await self._send_now()

    async def _show_paced(self) -> None:
        while True:
            await asyncio.sleep(self._after_s)
            self._changed.clear()
            await self._send_now()
            await self._changed.wait()

    async def _send_now(self) -> None:
        data = {**self._state, "turn": self._plan.id, "step": self._step}
        if data != self._sent and not self._over:
            self._sent = data
            await self._send(self._plan.thread_id, data)


class TurnActivities:
    """The activities of all turns of an agent."""

    def __init__(self, send: SendActivity):
        self._send = send
        self._running: dict[str, TurnActivity] = {}
        self._parked: dict[str, TurnActivity] = {}

    @contextlib.asynccontextmanager
    async def of(self, plan: TurnPlan, after_s: float = 0.0) -> AsyncIterator[TurnActivity]:
        """A turn that runs within the block."""
        activity = self._running[plan.id] = TurnActivity(self._send, plan, after_s)
        self._parked.pop(plan.id, None)
        try:
            async with activity.running():
                yield activity
        finally:
            del self._running[plan.id]
            if activity.parked:
                self._parked[plan.id] = activity
        for other in list(self._parked.values()):
            if other is not activity and other.thread_id == plan.thread_id:
                await other.repeat()  # this turn's end was shown in its place

    async def drop(self, turn: str) -> None:
        """A parked turn will not continue."""
        parked = self._parked.pop(turn, None)
        if parked is not None:
            await parked.dropped()

    async def repeat(self) -> None:
        """After a reconnect: the hub has forgotten the signals of the last connection."""
        for activity in [*self._parked.values(), *self._running.values()]:
            await activity.repeat()
