"""The agent's running and parked turns, and how they are cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hubbub.agents.inbox import StillOpenWakes, TurnPlan
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Model
from hubbub.waiting import cancel

__all__ = ["Cancellation", "ParkedTurns", "StopTurns", "TurnTasks"]

# Parked turns: they stopped because one of their calls waits for a person. Pure. Nothing runs for
# them, and their thread is free for other turns unless the backend has something that they share.
# Their record at the hub has all they need to continue; here only their plans are kept.


class ParkedTurns:
    """The parked turns of one agent. `resume` is called for each one that can continue."""

    def __init__(self, resume: Callable[[TurnPlan], None]) -> None:
        self._resume = resume
        self._parked: dict[str, TurnPlan] = {}
        self._early: set[str] = set()

    @property
    def threads(self) -> Iterator[str]:
        """The threads of the turns that wait for a decision."""
        return (plan.thread_id for plan in self._parked.values())

    def park(self, plan: TurnPlan) -> None:
        """The turn is about to stop and wait."""
        self._parked[plan.id] = plan

    def ended(self, turn: str) -> None:
        """A turn has stopped running. If it was parked, but a decision came while it was still
        running, it continues at once.
        """
        if turn in self._early:
            self._early.remove(turn)
            self._continue(turn)

    def decided(self, turn: str, *, running: bool) -> None:
        """There is a decision that the turn waits for: it continues once it has stopped."""
        if running:
            self._early.add(turn)
        else:
            self._continue(turn)

    def recheck(self, running: Iterable[TurnPlan]) -> None:
        """Decisions may have been missed: resume all parked turns, and let running ones check once
        more before they park.
        """
        for turn in list(self._parked):
            self._continue(turn)
        self._early.update(plan.id for plan in running)

    def drop(self, turn: str) -> bool:
        """Forget the turn. Returns whether it was parked."""
        return self._parked.pop(turn, None) is not None

    def clear(self) -> None:
        """Forget all turns: they belong to a log that no longer exists."""
        self._parked.clear()
        self._early.clear()

    def _continue(self, turn: str) -> None:
        plan = self._parked.pop(turn, None)
        if plan is not None:
            self._resume(plan)


@dataclass(frozen=True, slots=True)
class Cancellation:
    """Why a turn is cancelled."""

    reason: str
    by_hub: bool = False
    """The hub has ended it: nothing more is recorded or sent."""

    async def record(self, recorder: TurnRecorder) -> None:
        """Record the end of the turn with this reason."""
        if self.by_hub:
            await recorder.ended_by_hub(self.reason)
        else:
            await recorder.end("cancelled", self.reason)


class StopTurns(Model):
    """Data of the signal `stop_turns`."""

    turns: tuple[str, ...]
    code: str = ErrorCode.STOPPED
    by: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        """The reason as text, in the form that the hub records."""
        what = self.code.replace("_", " ")
        by = f" by {self.by}" if self.by else ""
        return f"{what}{by}: {self.reason}" if self.reason else f"{what}{by}"


@dataclass(slots=True)
class _Running:
    plan: TurnPlan
    task: asyncio.Task[None]
    ending: Cancellation | None = None


class TurnTasks:
    """Running turns by id. A turn is removed when it has ended, for whatever reason."""

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
        """While a finished turn's task makes its record durable."""
        task = _this_task()
        self._settling.add(task)
        try:
            yield
        finally:
            self._settling.remove(task)

    def runs(self, turn: str) -> bool:
        return turn in self._turns

    def in_thread(self, thread_id: str) -> str | None:
        """The id of the turn that runs in a thread, if any."""
        return next((p.id for p in self if p.thread_id == thread_id), None)

    # Cancelling
    # --------------------------------------------------------------------------------------

    def end(self, turn: str, ending: Cancellation) -> bool:
        """Cancel a turn soon. False if it is not running. The first reason counts, unless a later
        one says that the hub has ended the turn.
        """
        running = self._turns.get(turn)
        if running is None:
            return False
        first = running.ending is None
        if first or ending.by_hub:
            running.ending = ending
        if first:
            # Not at once: a task cancelled before its first step could not record its end.
            asyncio.get_running_loop().call_soon(self._cancel, running)
        return True

    def retain(self, still_open: StillOpenWakes) -> None:
        """Cancel turns that the hub ended while disconnected."""
        for plan in self:
            if not any(map(still_open.has, plan.incoming)):
                self.end(plan.id, Cancellation(_MEANWHILE, by_hub=True))

    def _cancel(self, running: _Running) -> None:
        if self._turns.get(running.plan.id) is running:  # else it only makes its end durable
            running.task.cancel()

    def ending(self, turn: str) -> Cancellation | None:
        """Why a running turn is being cancelled; None if it is not."""
        return self._turns[turn].ending

    def cancellation_of(self, turn: str) -> Cancellation | None:
        """Called by the turn's own task on CancelledError: why it was cancelled. With a reason the
        task continues, to record it; None means that the agent itself is shutting down.
        """
        ending = self.ending(turn)
        if ending is not None:
            _this_task().uncancel()
        return ending

    async def finish(self, within_s: float) -> None:
        """Wait until all turns have ended and are recorded, at most `within_s` seconds."""
        under_way = [*self._tasks, *self._settling]
        if under_way:
            await asyncio.wait(under_way, timeout=within_s)

    async def stop(self) -> None:
        """Cancel all turns without recording an end: the hub will offer them again."""
        await cancel(*self._tasks)

    @property
    def _tasks(self) -> list[asyncio.Task[None]]:
        return [turn.task for turn in self._turns.values()]


_MEANWHILE = "it was ended while there was no connection to the hub"


def _this_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None, "only within a task"
    return task
