"""When which mod wants to be called: in memory, by mod and key."""

from __future__ import annotations

from collections.abc import Callable

from hubbub.clock import Clock
from hubbub.mods.api import Mod
from hubbub.network.timer import Timer

__all__ = ["Alarms"]

Ring = Callable[[Mod, str], None]


class Alarms:
    """Calls `ring(mod, key)` when the time has come: of day (`clock`), or of a wait (`steady`)."""

    def __init__(self, clock: Clock, steady: Clock, ring: Ring):
        self._steady = steady
        self._moments, self._waits = _Calls(clock, ring), _Calls(steady, ring)

    def set(self, mod: Mod, key: str, when: float) -> None:
        """In place of what the mod asked for under the key before."""
        self._moments.set(mod, key, when)

    def wait(self, mod: Mod, key: str, seconds: float) -> None:
        """In place of the wait under the key."""
        self._waits.set(mod, key, self._steady.now() + seconds)

    def cancel(self, mod: Mod, key: str) -> None:
        """Neither the moment nor the wait."""
        self._moments.cancel(mod, key)
        self._waits.cancel(mod, key)

    def look(self) -> None:
        """Look at the time now: for clocks that are moved by hand."""
        self._moments.timer.look()
        self._waits.timer.look()

    def stop(self) -> None:
        """Nobody is called any more."""
        self._moments.stop()
        self._waits.stop()


class _Calls:
    """Those of one clock."""

    def __init__(self, clock: Clock, ring: Ring):
        self._ring = ring
        self._due: dict[tuple[Mod, str], float] = {}
        self.timer = Timer(clock, self._look)

    def set(self, mod: Mod, key: str, when: float) -> None:
        self._due[mod, key] = when
        self.timer.at(when)

    def cancel(self, mod: Mod, key: str) -> None:
        self._due.pop((mod, key), None)

    def stop(self) -> None:
        self._due.clear()
        self.timer.stop()

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
