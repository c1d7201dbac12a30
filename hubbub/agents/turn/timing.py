"""Time within a turn, as its record tells it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["TurnClock", "worked_ms"]


def worked_ms(steps: Sequence[Step]) -> float:
    """How far recorded steps reach: the end of the last thing that they tell, in milliseconds."""
    done: list[Step | ToolCallRecord] = [*steps, *(call for step in steps for call in step.calls)]
    return max(map(_end, done), default=0.0)


def _end(done: Step | ToolCallRecord) -> float:
    return (done.at_ms or 0.0) + (done.duration_ms or 0.0)


class TurnClock:
    """Milliseconds of work on one turn, by a clock that nobody sets.

    A turn that is taken up again goes on where its record (`steps`) ends: the time in which nobody
    worked on it does not count.
    """

    def __init__(self, steps: Sequence[Step] = (), monotonic: Callable[[], float] = time.monotonic):
        """`monotonic` gives seconds."""
        self._monotonic = monotonic
        self._zero = monotonic() - worked_ms(steps) / 1000

    @property
    def ms(self) -> float:
        """Now, to a tenth."""
        return round((self._monotonic() - self._zero) * 1000, 1)

    def since(self, at_ms: float) -> float:
        """Milliseconds that have passed since then."""
        return round(max(0.0, self.ms - at_ms), 1)
