"""The processes that have worked on a turn, and when there have been too many deaths. Pure.

    begun by a process -> held -> it ends the turn, leaves it in order (stops, or parks it), or dies

A turn that the next process begins while the last one still held it has cost a life. Who has said
something new in the turn got further than the one before: the count begins anew.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MOST_DEATHS", "NO_LIVES", "Lives"]

MOST_DEATHS = 3
"""Processes in a row that may die in the same turn: then it has ended."""


class Lives(NamedTuple):
    """What is known of a turn's processes. One that does not name itself is not counted."""

    life: str | None = None
    """The process that began it last."""
    held: bool = False
    """Whether that process works on it, as far as it has told."""
    deaths: int = 0
    """How many in a row have died in it."""
    said: int = 0
    """Messages that the turn had sent when the last one began it."""

    def begun(self, life: str | None, said: int) -> Lives:
        """The process `life` begins the turn, which has sent `said` messages so far."""
        if life is None:
            return Lives(said=said)
        if life == self.life:
            return self._replace(held=True)
        before = 0 if said > self.said else self.deaths
        return Lives(life, held=True, deaths=before + self.held, said=said)

    @property
    def over(self) -> bool:
        """Whether the turn has cost too many."""
        return self.deaths >= MOST_DEATHS


NO_LIVES = Lives()
"""Of a turn that nobody has begun."""
