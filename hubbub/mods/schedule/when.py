"""Parses the times of reminders, as written by people and models. Pure.

    2026-01-31T09:00          once, at this time in the given time zone
    2026-01-31T09:00+01:00    once, at this time
    09:00                     once, at the next nine o'clock
    in 10m                    once, ten minutes from now (s, m, h, d; also 1h30m)
    every 1h                  repeatedly, for the first time in an hour
    0 9 * * 1-5               cron: minute, hour, day, month, day of the week

When clocks change, cron times that do not exist come at the time they would have had, and times
that exist twice come once, as in Debian's cron. `every` counts seconds regardless of clocks.
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
"""Maximum time ahead, in seconds."""
MAX_OCCURRENCES = 60
"""Number of occurrences checked for the shortest interval of a cron expression."""
MAX_AHEAD_S = 400 * 86400.0
"""Seconds ahead that are checked for it. Rare occurrences are slow to find and far apart."""

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PARTS = re.compile(r"(?:\d{1,9}\s*[smhd]\s*)+")
_PART = re.compile(r"(\d{1,9})\s*([smhd])")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Once:
    at: float

    repeats = False

    def next(self, after: float) -> float | None:
        """The first occurrence after this time, or None."""
        return self.at if self.at > after else None

    def shortest(self, after: float) -> float:
        """The shortest interval between occurrences, in seconds."""
        return math.inf


@dataclass(frozen=True, slots=True)
class Every:
    start: float
    seconds: float

    repeats = True

    def next(self, after: float) -> float | None:
        """The first occurrence after this time, or None."""
        passed = math.floor((after - self.start) / self.seconds)
        due = self.start + (max(passed, 0) + 1) * self.seconds
        return due if due > after else due + self.seconds  # floats are not exact

    def shortest(self, after: float) -> float:
        """The interval between occurrences, in seconds."""
        return self.seconds


@dataclass(frozen=True, slots=True)
class Cron:
    expression: str
    zone: tzinfo

    repeats = True

    def next(self, after: float) -> float | None:
        """The first occurrence after this time, or None."""
        try:
            ticks = CronSim(self.expression, datetime.fromtimestamp(math.floor(after), self.zone))
            due = next(ticks).timestamp()
            # In an hour that exists twice, CronSim can return a time in the past.
            while due <= after:
                due = next(ticks).timestamp()
        except (StopIteration, OverflowError):
            return None
        return due

    def shortest(self, after: float) -> float:
        """The shortest interval between the next occurrences, in seconds."""
        shortest, before = math.inf, self.next(after)
        for _ in range(MAX_OCCURRENCES):
            following = self.next(before) if before is not None else None
            if before is None or following is None:
                break
            shortest, before = min(shortest, following - before), following
            if before - after > MAX_AHEAD_S:
                break
        return shortest


Rule = Once | Every | Cron


def zone_of(name: str) -> tzinfo:
    """A time zone by its name. Raises `ValueError`."""
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ValueError for names that are not paths
        raise ValueError(
            f"there is no time zone {name[:64]!r}; use a name such as Europe/Berlin, or UTC"
        ) from None


def parse_when(text: str, zone: tzinfo, start: float) -> Rule:
    """The rule that the text means if written at `start`. Raises `ValueError`."""
    text = " ".join(text.split())
    rule = _relative(text.lower(), zone, start) or _moment(text, zone) or _cron(text, zone)
    if rule is None:
        raise ValueError(f"{text[:64]!r} is not a time; use {EXAMPLES}")
    following = rule.next(start)
    if following is None:
        problem = "is in the past" if isinstance(rule, Once) else "never occurs"
        raise ValueError(f"{text[:64]!r} {problem}")
    if following - start > LONGEST_S:
        raise ValueError(f"{text[:64]!r} is more than ten years ahead")
    return rule


def _relative(text: str, zone: tzinfo, start: float) -> Rule | None:
    word, _, rest = text.partition(" ")
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        return Once(_next_clock(int(clock[1]), int(clock[2]), zone, start))
    if word not in ("in", "every") or not _PARTS.fullmatch(rest):
        return None
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(rest))
    if seconds <= 0 or seconds > LONGEST_S:
        raise ValueError(f"{text[:64]!r} must be between one second and ten years")
    return Once(start + seconds) if word == "in" else Every(start, seconds)


def _next_clock(hour: int, minute: int, zone: tzinfo, start: float) -> float:
    now = datetime.fromtimestamp(start, zone)
    time = now.replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
    if time.timestamp() <= start:
        time += timedelta(days=1)
    return time.timestamp()


def _moment(text: str, zone: tzinfo) -> Once | None:
    try:
        time = datetime.fromisoformat(text)
        return Once((time if time.tzinfo else time.replace(tzinfo=zone)).timestamp())
    except (ValueError, OverflowError):
        return None


def _cron(text: str, zone: tzinfo) -> Cron | None:
    if len(text.split()) != 5:
        return None
    try:
        CronSim(text, datetime.fromtimestamp(0, zone))
    except CronSimError as error:
        raise ValueError(f"{text!r} is not a cron expression: {str(error).lower()}") from None
    return Cron(text, zone)
