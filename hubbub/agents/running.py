"""The turns of an agent that run or wait for a person, and how they end before their time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hubbub.agents.inbox import StillOpen, TurnPlan
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Model

__all__ = ["Ending", "Parking", "RunningTurns", "StopTurns"]

# Turns that have stopped because a call of theirs waits for a person. Pure.
#
# Nothing runs for them, and their thread is free for other turns. Their record at the hub has all
# that they need to go on: here is only which they are.


class Parking:
    """The parked turns of one agent. `again` is given each that can go on."""

    def __init__(self, again: Callable[[TurnPlan], None]) -> None:
        self._again = again
        self._parked: dict[str, TurnPlan] = {}
        self._early: set[str] = set()

    def park(self, plan: TurnPlan) -> None:
        """The turn is about to stop."""
        self._parked[plan.id] = plan

    def ended(self, turn: str) -> None:
        """A turn runs no more. One that is parked although something was decided while it still ran
        goes on at once.
        """
        if turn in self._early:
            self._early.remove(turn)
            self._go_on(turn)

    def decided(self, turn: str, *, running: bool) -> None:
        """Something that the turn waits for is decided: it goes on, as soon as it has stopped."""
        if running:
            self._early.add(turn)
        else:
            self._go_on(turn)

    def look_again(self, running: Iterable[TurnPlan]) -> None:
        """Anything may have been decided that was not heard of: all go on, and those that run do
        not stop before they have asked once more.
        """
        for turn in list(self._parked):
            self._go_on(turn)
        self._early.update(plan.id for plan in running)

    def drop(self, turn: str) -> bool:
        """The turn will not go on. Whether it was parked."""
        return self._parked.pop(turn, None) is not None

    def clear(self) -> None:
        """Forget them: they belong to a log that is no more."""
        self._parked.clear()
        self._early.clear()

    def _go_on(self, turn: str) -> None:
        plan = self._parked.pop(turn, None)
        if plan is not None:
            self._again(plan)


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a turn is cancelled."""

    reason: str
    by_hub: bool = False
    """The hub has ended it: nothing more is recorded of it or said in it."""

    async def record(self, recorder: TurnRecorder) -> None:
        """The turn is over for this reason."""
        if self.by_hub:
            await recorder.ended_by_hub(self.reason)
        else:
            await recorder.end("cancelled", self.reason)


class StopTurns(Model):
    """The data of the signal `stop_turns`."""

    turns: tuple[str, ...]
    code: str = ErrorCode.STOPPED
    by: str = ""
    reason: str = ""

    @property
    def told(self) -> str:
        """In words: what the turns' own records at the hub say, as far as it is known here."""
        what = self.code.replace("_", " ")
        by = f" by {self.by}" if self.by else ""
        return f"{what}{by}: {self.reason}" if self.reason else f"{what}{by}"


@dataclass(slots=True)
class _Running:
    plan: TurnPlan
    task: asyncio.Task[None]
    ending: Ending | None = None


class RunningTurns:
    """By their ids. A turn is taken out when it has come to its end, however it did."""

    def __init__(self) -> None:
        self._turns: dict[str, _Running] = {}
        self._settling: set[asyncio.Task[object]] = set()

    def __iter__(self) -> Iterator[TurnPlan]:
        return iter([turn.plan for turn in self._turns.values()])

    def add(self, plan: TurnPlan, task: asyncio.Task[None]) -> None:
        self._turns[plan.id] = _Running(plan, task)

    def remove(self, turn: str) -> None:
        del self._turns[turn]

    @contextlib.contextmanager
    def settling(self) -> Iterator[None]:
        """Within, the task of a turn that runs no more makes its record durable."""
        task = _this_task()
        self._settling.add(task)
        try:
            yield
        finally:
            self._settling.remove(task)

    def runs(self, turn: str) -> bool:
        return turn in self._turns

    def in_thread(self, thread_id: str) -> str | None:
        """The turn that runs in a thread; None if there is none."""
        return next((p.id for p in self if p.thread_id == thread_id), None)

    # Before their time --------------------------------------------------------------------------

    def end(self, turn: str, ending: Ending) -> bool:
        """Cancel a turn soon. False if it does not run. The first reason counts, but that the hub
        has ended it counts more than any."""
        running = self._turns.get(turn)
        if running is None:
            return False
        first = running.ending is None
        if first or ending.by_hub:
            running.ending = ending
        if first:
            # Not at once: a task that is cancelled before it has begun never comes to record it.
            asyncio.get_running_loop().call_soon(self._cancel, running)
        return True

    def keep(self, still: StillOpen) -> None:
        """End what the hub has ended while there was no connection to it."""
        for plan in self:
            if not any(map(still.has, plan.incoming)):
                self.end(plan.id, Ending(_MEANWHILE, by_hub=True))

    def _cancel(self, running: _Running) -> None:
        if self._turns.get(running.plan.id) is running:  # else it only makes its end durable
            running.task.cancel()

    def ending(self, turn: str) -> Ending | None:
        """Why a running turn is cancelled; None if nobody has asked for it."""
        return self._turns[turn].ending

    def caught(self, turn: str) -> Ending | None:
        """The task of this turn, which calls, has been cancelled: why. With a reason it goes on to
        record that; None: the agent itself ends.
        """
        ending = self.ending(turn)
        if ending is not None:
            _this_task().uncancel()
        return ending

    async def finish(self, within_s: float) -> None:
        """Wait until all have ended and are recorded, but no longer than this."""
        under_way = [*self._tasks, *self._settling]
        if under_way:
            await asyncio.wait(under_way, timeout=within_s)

    async def stop(self) -> None:
        """Cancel them, without an end: the hub will offer them again."""
        tasks = self._tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    @property
    def _tasks(self) -> list[asyncio.Task[None]]:
        return [turn.task for turn in self._turns.values()]


_MEANWHILE = "it was ended while there was no connection to the hub"


def _this_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None, "only within a task"
    return task
