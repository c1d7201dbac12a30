"""When an agent's process that died is started again, and when no longer."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GiveUp", "Restart", "RestartPolicy", "RestartRules"]


@dataclass(frozen=True, slots=True)
class Restart:
    """Start it again after `after_s` seconds."""

    after_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Leave it: it died `deaths` times in a row as soon as it ran."""

    deaths: int


@dataclass(frozen=True, slots=True)
class RestartRules:
    """All times in seconds."""

    first_s: float = 0.5
    """Before the first restart; every further death doubles it."""
    most_s: float = 60.0
    quick_s: float = 10.0
    """Who lived shorter than this died quickly."""
    quick_deaths: int = 5
    """So many quick deaths in a row open the circuit."""
    steady_s: float = 120.0
    """Who lived this long starts with a clean slate."""


class RestartPolicy:
    """The history of one process: told of each death, it says what to do.

    The delay doubles from death to death and is forgotten after a steady life; only quick deaths in
    a row open the circuit, and an open circuit stays open. Who came as far as to begin a turn was
    able to live: the hub sees to it that one turn costs few lives.
    """

    def __init__(self, rules: RestartRules | None = None):
        self._rules = rules or RestartRules()
        self._deaths = 0
        self._quick = 0

    def died(self, lived_s: float, *, worked: bool = False) -> Restart | GiveUp:
        """`worked`: whether it had begun a turn."""
        rules = self._rules
        if self._quick >= rules.quick_deaths:
            return GiveUp(self._quick)
        if worked:
            self._deaths = self._quick = 0
            return Restart(rules.first_s)
        if lived_s >= rules.steady_s:
            self._deaths = 0
        self._deaths += 1
        self._quick = self._quick + 1 if lived_s < rules.quick_s else 0
        if self._quick >= rules.quick_deaths:
            return GiveUp(self._quick)
        doublings = min(self._deaths - 1, 32)
        return Restart(min(rules.most_s, rules.first_s * 2.0**doublings))
