"""When a reminder comes: what people and models write, as moments. Pure.

    2026-01-31T09:00          once, at this time in the time zone that is given
    2026-01-31T09:00+01:00    once, at this time
    09:00                     once, when it is nine the next time
    in 10m                    once, ten minutes from now (s, m, h, d; also 1h30m)
    every 1h                  again and again, the first time in an hour
    0 9 * * 1-5               cron: minute, hour, day, month, day of the week

Where the clocks change, cron's times that do not exist come when they would have come, and those
that exist twice come once, as Debian's cron does it. `every` counts seconds and knows no clocks.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

__all__ = ["Cron", "Every", "Once", "Rule", "parse_when", "zone_of"]

EXAMPLES = (
    '"2026-01-31T09:00", "09:00", "in 10m", "every 2h", or as cron "0 9 * * 1-5" (minute, hour, '
    "day, month, day of the week)"
)
LONGEST_S = 10 * 366 * 86400.0
"""How far ahead anything may be."""
MOST_LOOKED_AT = 60
"""Occurrences among which the shortest interval of a cron expression is looked for."""
MOST_AHEAD_S = 400 * 86400.0
"""How far ahead that is looked for: rare ones take long to find, and are not close together."""

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PARTS = re.compile(r"(?:\d{1,9}\s*[smhd]\s*)+")
_PART = re.compile(r"(\d{1,9})\s*([smhd])")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Once:
    at: float

    repeats = False

    def next(self, after: float) -> float | None:
        """The first moment after this one."""
        return self.at if self.at > after else None

    def shortest(self, after: float) -> float:
        """Seconds between two of its moments, where they are closest."""
        return math.inf


@dataclass(frozen=True, slots=True)
class Every:
    start: float
    seconds: float

    repeats = True

    def next(self, after: float) -> float | None:
        """The first moment after this one."""
        passed = math.floor((after - self.start) / self.seconds)
        found = self.start + (max(passed, 0) + 1) * self.seconds
        return found if found > after else found + self.seconds  # fractions are not exact

    def shortest(self, after: float) -> float:
        """Seconds between two of its moments."""
        return self.seconds


@dataclass(frozen=True, slots=True)
class Cron:
    expression: str
    zone: tzinfo

    repeats = True

    def next(self, after: float) -> float | None:
        """The first moment after this one; None if there is none any more."""
        try:
            ticks = CronSim(self.expression, datetime.fromtimestamp(math.floor(after), self.zone))
            found = next(ticks).timestamp()
            # Of an hour that comes twice, cron may name a moment that has passed.
            while found <= after:
                found = next(ticks).timestamp()
        except (StopIteration, OverflowError):
            return None
        return found

    def shortest(self, after: float) -> float:
        """Seconds between two of its moments, where the next ones are closest."""
        found, before = math.inf, self.next(after)
        for _ in range(MOST_LOOKED_AT):
            following = self.next(before) if before is not None else None
            if before is None or following is None:
                break
            found, before = min(found, following - before), following
            if before - after > MOST_AHEAD_S:
                break
        return found


Rule = Once | Every | Cron


def zone_of(name: str) -> tzinfo:
    """A time zone by its name. Raises `ValueError`."""
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # of names that are no paths, ValueError; of no file
        raise ValueError(
            f"there is no time zone {name[:64]!r}; they are named as Europe/Berlin, or UTC"
        ) from None


def parse_when(text: str, zone: tzinfo, start: float) -> Rule:
    """The rule, as who said it at `start` means it. Raises `ValueError`."""
    said = " ".join(text.split())
    rule = _spoken(said.lower(), zone, start) or _moment(said, zone) or _cron(said, zone)
    if rule is None:
        raise ValueError(f"{said[:64]!r} is no time; write {EXAMPLES}")
    following = rule.next(start)
    if following is None:
        passed = isinstance(rule, Once)
        raise ValueError(f"{said[:64]!r} has passed" if passed else f"{said[:64]!r} never comes")
    if following - start > LONGEST_S:
        raise ValueError(f"{said[:64]!r} is more than ten years ahead")
    return rule


def _spoken(said: str, zone: tzinfo, start: float) -> Rule | None:
    word, _, rest = said.partition(" ")
    clock = _CLOCK.fullmatch(said)
    if clock is not None:
        return Once(_next_clock(int(clock[1]), int(clock[2]), zone, start))
    if word not in ("in", "every") or not _PARTS.fullmatch(rest):
        return None
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(rest))
    if seconds <= 0 or seconds > LONGEST_S:
        raise ValueError(f"{said[:64]!r}: from one second to ten years")
    return Once(start + seconds) if word == "in" else Every(start, seconds)


def _next_clock(hour: int, minute: int, zone: tzinfo, start: float) -> float:
    now = datetime.fromtimestamp(start, zone)
    found = now.replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
    if found.timestamp() <= start:
        found += timedelta(days=1)
    return found.timestamp()


def _moment(said: str, zone: tzinfo) -> Once | None:
    try:
        found = datetime.fromisoformat(said)
        return Once((found if found.tzinfo else found.replace(tzinfo=zone)).timestamp())
    except (ValueError, OverflowError):
        return None


def _cron(said: str, zone: tzinfo) -> Cron | None:
    if len(said.split()) != 5:
        return None
    try:
        CronSim(said, datetime.fromtimestamp(0, zone))
    except CronSimError as error:
        raise ValueError(f"{said!r} is no cron expression: {str(error).lower()}") from None
    return Cron(said, zone)
