"""The reminders of a network: their table, and when each of them comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hubbub.errors import OperationError
from hubbub.mods.fields import time_of
from hubbub.mods.host import Alarm, Host
from hubbub.mods.operation import Statement, Value
from hubbub.mods.repository import insert, put, update
from hubbub.mods.schedule.schemas import Reminder
from hubbub.mods.schedule.when import Every, Rule, parse_when, zone_of
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode

__all__ = [
    "OPERATOR",
    "ReminderRow",
    "ReminderScheduler",
    "by_the_clock",
    "deleted",
    "following",
    "inserted",
    "updated",
]

OPERATOR = "operator"
"""Whose reminders those of the network's config are."""


class ReminderRow(NamedTuple):
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

    def to_schema(self, *, repeats: bool) -> Reminder:
        return Reminder(
            **{name: value for name, value in self._asdict().items() if name in _SAME},
            id=f"r{self.id}",
            of=self.owner,
            when=self.at,
            timezone=self.zone,
            thread_id=self.thread,
            state="paused" if self.paused else "active",
            next=None if self.paused else time_of(self.due),
            repeats=repeats,
        )


_SAME = {"name", "text", "wakes", "until", "times", "problem"}


def day_of(seconds: float) -> str:
    """The day (UTC)."""
    return f"{time_of(seconds):%Y-%m-%d}"


async def load(host: Host) -> tuple[dict[int, ReminderRow], dict[str, tuple[str, int]], int]:
    """All reminders by number; by participant the day and how many of its reminders woke somebody
    on it; and the last number that was used."""
    columns = ", ".join(ReminderRow._fields)
    rows = await host.rows(f"SELECT {columns} FROM schedule_reminder ORDER BY id")
    days = await host.rows("SELECT owner, day, fired FROM schedule_day")
    ((last,),) = await host.rows("SELECT id FROM schedule_last")
    found = {row[0]: _row(row) for row in rows}
    return found, {who: (day, n) for who, day, n in days}, last


def _row(values: Sequence[Any]) -> ReminderRow:
    # Any: SQLite's values, in the order of its fields.
    row = ReminderRow._make(values)
    wakes = tuple(json.loads(values[5]))
    return row._replace(wakes=wakes, paused=bool(row.paused), outside=bool(row.outside))


def _values(row: ReminderRow) -> dict[str, Value]:
    plain = {"wakes": json.dumps(row.wakes), "paused": int(row.paused), "outside": int(row.outside)}
    return {**row._asdict(), **plain}


def inserted(row: ReminderRow) -> Sequence[Statement]:
    last = Statement("UPDATE schedule_last SET id = max(id, ?)", (row.id,))
    return [insert("schedule_reminder", **_values(row)), last]


def updated(row: ReminderRow) -> Sequence[Statement]:
    """The reminder as it is now, if it is still there."""
    return [update("schedule_reminder", _values(row), id=row.id)._replace(rows=None)]


def deleted(row: ReminderRow) -> Sequence[Statement]:
    return [Statement("DELETE FROM schedule_reminder WHERE id = ?", (row.id,))]


def fired(owner: str, day: str, count: int) -> Statement:
    return put("schedule_day", "owner", owner=owner, day=day, fired=count)


def following(current: ReminderRow, said: ReminderRow, now: float) -> ReminderRow | None:
    """The reminder as it goes on after an occurrence; None: it is over."""
    if current.due != said.due:
        return current  # somebody has resumed it meanwhile
    try:
        rule = said.rule
    except ValueError:
        return current._replace(paused=True, problem=f"the time zone {said.zone} is not known")
    times = None if current.times is None else current.times - 1
    due = rule.next(max(now, said.due)) if rule.repeats else None
    if due is None or times == 0 or (current.until is not None and due > current.until):
        return None
    return current._replace(due=due, times=times)


def by_the_clock(row: ReminderRow, now: float) -> ReminderRow:
    """The reminder as the clock is now: it may have been set back meanwhile. An occurrence that was
    said before is not said again."""
    try:
        rule = row.rule
        due = rule.next(now) if rule.repeats else None
    except ValueError:
        return row
    return row if due is None or row.due <= due else row._replace(due=due)


def left(row: ReminderRow, now: float) -> float | None:
    """Seconds that are left of a wait (`in 10m`, `every 1h`), and never more than it was to last,
    whatever the clock was set to; below zero: it is late. None: it comes at a time of day."""
    try:
        rule = row.rule
    except ValueError:
        return None
    if isinstance(rule, Every):
        return min(row.due - now, rule.seconds)
    if row.at.lower().startswith("in "):
        return min(row.due - now, row.due - row.start)
    return None


RETRY_DELAY_S = 5.0
"""Seconds until what the store has refused is tried again."""
LATE_S = 60.0
"""Seconds after which a reminder says that it is late."""


class ReminderScheduler:
    """Knows all reminders; `ring` is called when the alarm rings."""

    def __init__(self, host: Host, daily: Callable[[], int]):
        """`daily` tells how often a day reminders of one agent may wake somebody."""
        self._host, self._daily = host, daily
        self._alarm = Alarm(host, "due")
        self.rows: dict[int, ReminderRow] = {}
        self._waits: dict[int, float] = {}
        """Those that come when so much time has passed: when that is by the steady clock."""
        self.coming: set[int] = set()
        """Those that are being said now."""
        self._fired: dict[str, tuple[str, int]] = {}
        """By agent: the day, and how often its reminders woke somebody on it."""
        self._last = 0

    async def load(self) -> None:
        rows, self._fired, self._last = await load(self._host)
        for row in rows.values():
            self._put(by_the_clock(row, self._host.now()))

    def _put(self, row: ReminderRow) -> None:
        known = self.rows.get(row.id)
        self.rows[row.id] = row
        if known is not None and known.due == row.due and row.id in self._waits:
            return  # it waits already
        seconds = left(row, self._host.now())
        self._waits.pop(row.id, None)
        if seconds is not None:
            self._waits[row.id] = self._host.steady() + seconds

    def _late(self, row: ReminderRow) -> float:
        """Seconds since it should have come; below zero: it comes in so many."""
        wait = self._waits.get(row.id)
        return self._host.now() - row.due if wait is None else self._host.steady() - wait

    def number(self) -> int:
        """For a new one; no number is given twice."""
        self._last += 1
        return self._last

    def took(self, row: ReminderRow) -> None:
        """The reminder stands in the table like this."""
        self._put(row)
        self.ring_next()

    def dropped(self, row: ReminderRow) -> None:
        """It is not in the table any more."""
        self.rows.pop(row.id, None)
        self._waits.pop(row.id, None)

    def ring(self) -> None:
        """Say all that is due."""
        self._alarm.rung()
        for row in list(self.rows.values()):
            if self._late(row) >= 0 and not row.paused and row.id not in self.coming:
                self.coming.add(row.id)
                self._host.spawn(self._come(row))
        self.ring_next()

    def ring_next(self) -> None:
        """Be called when the next one is due."""
        waiting = [r for r in self.rows.values() if not r.paused and r.id not in self.coming]
        self._alarm.at(min((r.due for r in waiting if r.id not in self._waits), default=None))
        waits = [-self._late(r) for r in waiting if r.id in self._waits]
        if waits:
            self._host.after(max(min(waits), 0.0), "wait")

    async def _come(self, row: ReminderRow) -> None:
        """Say it, and write down when it comes next. What was said before a crash that kept this
        from being written is not said again: its occurrence is the key."""
        try:
            problem = await self._say(row)
            await self._go_on(row, problem)
        except BaseException:
            self._alarm.at(self._host.now() + RETRY_DELAY_S)
            raise
        finally:
            self.coming.discard(row.id)
        self.ring_next()
        if problem and row.owner == OPERATOR:
            raise OperationError(ErrorCode.REJECTED, f"the reminder {row.name!r}: {problem}")

    async def _say(self, row: ReminderRow) -> str:
        """Returns why it could not be said; empty: it was."""
        own = thread_ids.direct((row.owner, "hub"))
        if row.owner != OPERATOR and row.thread != own:
            direct = thread_ids.kind_of(row.thread) == "direct"
            if not direct and not self._host.reads(row.owner, row.thread):
                return f"{row.owner} does not read {row.thread} any more"
        wakes, due = row.wakes, time_of(row.due).isoformat()
        told = row.text if row.owner == OPERATOR else f"Reminder of {row.owner}: {row.text}"
        late = self._late(row) > LATE_S
        if late:
            told += f"\n(It was due at {due}; the hub could not say it then.)"
        if self._spent(row):
            wakes = ()
            told += f"\n(It wakes nobody: reminders of {row.owner} have woken enough for a day.)"
        try:
            await self._host.open(
                row.thread,
                told,
                {"reminder": f"r{row.id}", "text": row.text, "due": due, "late": late},
                timer_of=row.owner,
                wakes=wakes,
                once=f"{row.id}:{row.due!r}",
                outside=row.outside,
            )
        except OperationError as error:
            return error.message
        return ""

    def _spent(self, row: ReminderRow) -> bool:
        """Whether reminders of this agent have woken as often today as they may; if not, this one
        is counted."""
        if row.owner == OPERATOR or self._host.kind_of(row.owner) == "human":
            return False
        today = day_of(self._host.now())
        day, count = self._fired.get(row.owner, (today, 0))
        count = count if day == today else 0
        if count >= self._daily():
            return True
        self._fired[row.owner] = (today, count + 1)
        return False

    async def _go_on(self, row: ReminderRow, problem: str) -> None:
        """Write down when it comes next: once for all that was missed."""
        day = self._fired.get(row.owner)
        count = [fired(row.owner, *day)] if day is not None else []
        goes_on = following(self.rows.get(row.id, row), row, self._host.now())
        if goes_on is None and not problem:
            await self._host.keep([*deleted(row), *count])
            self.dropped(row)
            return
        after = goes_on or row
        if problem:
            after = after._replace(paused=True, problem=problem)
        await self._host.keep([*updated(after), *count])
        if row.id in self.rows:
            self._put(after)
