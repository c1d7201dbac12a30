"""Which of a step's calls are waited for: all, any one that succeeds, or more than half of them.

When enough have succeeded the others are cancelled, and their results say so. A call that writes to
the network is never cut off in the middle: the one under way is finished, those that wait behind it
do not begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from hubbub.agents.turn.loop import FINISH, CallResult, failure
from hubbub.protocol.turns import ToolCallRecord, WaitStrategy

__all__ = ["CANCELLED", "Race", "needed"]

CANCELLED = "cancelled"
"""The `error` of a call that was not waited for."""

RunOne = Callable[[ToolCallRecord], Awaitable[CallResult]]


def needed(wait: WaitStrategy, calls: int) -> int:
    """How many of so many calls must succeed before the rest is cancelled."""
    match wait:
        case "all":
            return calls + 1  # never: the failed ones are waited for too
        case "any":
            return 1
        case "majority":
            return calls // 2 + 1


class Race:
    """The calls of one step, side by side.

    `step` are all of them: those that have a result already count too, `finish` does not.
    """

    def __init__(self, wait: WaitStrategy, step: Sequence[ToolCallRecord], run: RunOne):
        counted = [call for call in step if call.name != FINISH]
        self._missing = needed(wait, len(counted))
        self._missing -= sum(1 for c in counted if c.result is not None and c.error is None)
        self._wait, self._run = wait, run
        self._results: dict[str, CallResult] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def run(
        self, calls: Sequence[ToolCallRecord], ordered: Callable[[ToolCallRecord], bool]
    ) -> list[CallResult]:
        """Run `calls`; the `ordered` ones one after the other. A result for each, in order."""
        queue = [call for call in calls if ordered(call)]
        if self._missing > 0:
            async with asyncio.TaskGroup() as group:
                if queue:
                    group.create_task(self._one_by_one(queue))
                self._tasks = [
                    group.create_task(self._run_one(call)) for call in calls if not ordered(call)
                ]
        return [self._result(call) for call in calls]

    def _result(self, call: ToolCallRecord) -> CallResult:
        result = self._results.get(call.id)
        waits = result is not None and result.parked is not None
        if result is None or (waits and self._missing <= 0):
            return self._cancelled(call)
        return result

    async def _one_by_one(self, queue: Sequence[ToolCallRecord]) -> None:
        for call in queue:
            if self._missing > 0:
                await self._run_one(call)

    async def _run_one(self, call: ToolCallRecord) -> None:
        result = self._results[call.id] = await self._run(call)
        if result.error is None and result.parked is None:
            self._missing -= 1
            if self._missing == 0:
                self._cancel_the_rest()

    def _cancel_the_rest(self) -> None:
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def _cancelled(self, call: ToolCallRecord) -> CallResult:
        enough = "one has" if self._wait == "any" else "more than half have"
        words = f"cancelled: of the calls of this step {enough} succeeded, as you wanted; {_MAYBE}"
        return CallResult(call.id, failure(CANCELLED, words), CANCELLED)


_MAYBE = "what this one had begun may have taken effect"
