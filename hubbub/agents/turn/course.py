"""What all turns of models have in common, whoever decides on their steps: time and calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

from hubbub.agents.tools.toolbox import Around, Toolbox
from hubbub.agents.turn.journal import Journal
from hubbub.agents.turn.loop import CallResult, RunTools
from hubbub.agents.turn.taint import Taint

__all__ = ["Calls", "in_time"]


async def in_time(seconds: float, work: Awaitable[None]) -> str | None:
    """Wait for a turn's work. Returns why it was cancelled, if its time was up before."""
    try:
        async with asyncio.timeout(seconds) as limit:
            await work
    except TimeoutError:
        if not limit.expired():
            raise  # of something within, which should have said more
        return f"not finished after {seconds:g} s"
    return None


@dataclass(frozen=True, slots=True)
class Calls:
    """Runs the calls of a turn's steps: what must not run twice once it is on record.

    `around` is given each call, and what runs it.
    """

    toolbox: Toolbox
    journal: Journal
    around: Around | None = None
    taint: Taint = field(default_factory=Taint)
    """Of the turn, or of the helper whose calls they are."""

    async def run(self, run: RunTools, base: int = 0) -> list[CallResult]:
        """The results, in the order of the calls. `base`: where the step's numbers begin."""
        outside = self.taint.outside  # what their results bring, the model had not read
        if self.around is not None or not self.toolbox.only_asks_the_hub(run.calls):
            await self.journal.begun()  # who dies of one of them has died in this turn
        if self.toolbox.must_be_recorded(run.calls):
            await self.journal.durable()
        plan, step = self.journal.plan, run.step
        return await self.toolbox.run(
            plan.id,
            step.n + base,
            step.calls,
            run.calls,
            again=run.again,
            clock=self.journal.clock,
            thread_id=plan.thread_id,
            wait=step.wait,
            around=self.around,
            outside=outside,
        )

    def notes(self, run: RunTools, results: Sequence[CallResult]) -> tuple[str, ...]:
        """What is to be noted of these results: that something from outside has been read."""
        return self.taint.results(run.calls, results)
