"""What every scenario is given: how long to measure, where to put files, where to speak."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.figures import Figure
from benchmarks.load import Pace

__all__ = ["Bench", "Scenario"]


@dataclass
class Bench:
    """One run of the benchmark."""

    scratch: Path
    """A folder on a real disk, removed afterwards."""
    console: Console
    quick: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        return 2 if self.quick else 5

    def pace(self, window: int) -> Pace:
        return Pace(window, 0.3, 1.0) if self.quick else Pace(window, 0.5, 2.0)

    def note(self, text: str | None) -> None:
        """Something a reader of the table should know; None is nothing."""
        if text is not None:
            self.notes.append(text)

    def say(self, text: str) -> None:
        self.console.print(f"[dim]{text}", highlight=False)


Scenario = Callable[[Bench], Awaitable[Sequence[Figure]]]
