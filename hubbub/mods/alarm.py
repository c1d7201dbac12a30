"""One alarm of a mod for many moments that stand in its tables: deadlines, due times."""

from __future__ import annotations

from hubbub.mods.host import Host

__all__ = ["Alarm"]


class Alarm:
    """Rings once, as the mod's `on_timer(key)`, at the earliest of the moments that it was told.

    The mod then deals with all that has come (`rung` first), and names the next moment.
    """

    def __init__(self, host: Host, key: str):
        self._host, self.key = host, key
        self._next: float | None = None

    def at(self, moment: float | None) -> None:
        """Ring at this moment, too, in seconds since the epoch. None: there is none."""
        if moment is not None and (self._next is None or moment < self._next):
            self._next = moment
            self._host.at(moment, self.key)

    def rung(self) -> None:
        """It has rung: no moment is known any more."""
        self._next = None
