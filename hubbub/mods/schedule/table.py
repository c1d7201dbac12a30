"""The tables of the mod `schedule`: reminders as rows, and the statements that write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from hubbub.mods.host import Host
from hubbub.mods.rows import Statement
from hubbub.mods.schedule.when import Rule, parse_when, zone_of
from hubbub.mods.schedule.words import Reminder
from hubbub.mods.times import time_of

__all__ = ["OPERATOR", "Row", "day_of", "deleted", "fired", "inserted", "load", "updated"]

OPERATOR = "operator"
"""Whose reminders those of the network's config are."""

_COLUMNS = (
    "id, owner, name, thread, text, wakes, at, zone, start, due, until, times, paused, problem, "
    "outside"
)


class Row(NamedTuple):
    """A reminder. Moments are seconds since the epoch."""

    id: int
    owner: str
    name: str
    thread: str
    text: str
    wakes: tuple[str, ...]
    at: str
    """When, as it was said at `start`."""
    zone: str
    start: float
    due: float
    """When it comes next."""
    until: float | None = None
    times: int | None = None
    paused: bool = False
    problem: str = ""
    outside: bool = False

    @property
    def rule(self) -> Rule:
        """Raises `ValueError` where the time zone is known no longer."""
        return parse_when(self.at, zone_of(self.zone), self.start)

    def told(self, *, repeats: bool) -> Reminder:
        return Reminder(
            id=f"r{self.id}",
            of=self.owner,
            name=self.name,
            text=self.text,
            when=self.at,
            timezone=self.zone,
            thread_id=self.thread,
            wakes=self.wakes,
            state="paused" if self.paused else "active",
            next=None if self.paused else time_of(self.due),
            repeats=repeats,
            until=time_of(self.until),
            times=self.times,
            problem=self.problem,
        )


def day_of(seconds: float) -> str:
    """The day (UTC)."""
    return f"{time_of(seconds):%Y-%m-%d}"


async def load(host: Host) -> tuple[dict[int, Row], dict[str, tuple[str, int]], int]:
    """All reminders by number; by participant the day and how many of its reminders woke somebody
    on it; and the last number that was used."""
    rows = await host.rows(f"SELECT {_COLUMNS} FROM schedule_reminder ORDER BY id")
    days = await host.rows("SELECT owner, day, fired FROM schedule_day")
    ((last,),) = await host.rows("SELECT id FROM schedule_last")
    found = {row[0]: _row(row) for row in rows}
    return found, {who: (day, n) for who, day, n in days}, last


def _row(values: Sequence[Any]) -> Row:
    # Any: SQLite's values, in the order of `_COLUMNS`.
    row = Row._make(values)
    wakes = tuple(json.loads(values[5]))
    return row._replace(wakes=wakes, paused=bool(row.paused), outside=bool(row.outside))


def _values(row: Row) -> tuple[str | int | float | None, ...]:
    return (*row[:5], json.dumps(row.wakes), *row[6:12], int(row.paused), row.problem,
            int(row.outside))  # fmt: skip


def inserted(row: Row) -> Sequence[Statement]:
    places = ", ".join("?" * len(row))
    return [
        Statement(f"INSERT INTO schedule_reminder ({_COLUMNS}) VALUES ({places})", _values(row)),
        Statement("UPDATE schedule_last SET id = max(id, ?)", (row.id,)),
    ]


def updated(row: Row) -> Sequence[Statement]:
    """The reminder as it is now, if it is still there."""
    names = _COLUMNS.split(", ")[1:]
    sql = f"UPDATE schedule_reminder SET {', '.join(f'{n} = ?' for n in names)} WHERE id = ?"
    return [Statement(sql, (*_values(row)[1:], row.id))]


def deleted(row: Row) -> Sequence[Statement]:
    return [Statement("DELETE FROM schedule_reminder WHERE id = ?", (row.id,))]


def fired(owner: str, day: str, count: int) -> Statement:
    sql = "INSERT OR REPLACE INTO schedule_day VALUES (?, ?, ?)"
    return Statement(sql, (owner, day, count))
