"""When which mod wants to be called: in memory, by mod and key."""

from __future__ import annotations

from collections.abc import Callable

from hubbub.clock import Clock
from hubbub.mods.api import Mod
from hubbub.network.timer import Timer

__all__ = ["Alarms"]


class Alarms:
    """Calls `ring(mod, key)` when the time has come."""

    def __init__(self, clock: Clock, ring: Callable[[Mod, str], None]):
        self._ring = ring
        self._due: dict[tuple[Mod, str], float] = {}
        self._timer = Timer(clock, self._look)

    def set(self, mod: Mod, key: str, when: float) -> None:
        """In place of what the mod asked for under the key before."""
        self._due[mod, key] = when
        self._timer.at(when)

    def cancel(self, mod: Mod, key: str) -> None:
        self._due.pop((mod, key), None)

    def look(self) -> None:
        """Look at the time now: for clocks that are moved by hand."""
        self._timer.look()

    def stop(self) -> None:
        """Nobody is called any more."""
        self._due.clear()
        self._timer.stop()

    def _look(self, now: float) -> float | None:
        due = (
            sorted(
                ((when, place) for place, when in self._due.items() if when <= now),
                key=lambda each: (each[0], each[1][1]),  # mods have no order among themselves
            )
            if self._due
            else []
        )
        for when, place in due:
            if self._due.get(place) == when:  # else an earlier one has changed it
                del self._due[place]
                self._ring(*place)
        return min(self._due.values(), default=None)
