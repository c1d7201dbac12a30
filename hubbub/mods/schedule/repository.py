"""The reminders of a network: their table, and the scheduler that sends them."""

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

__all__ = [
    "OPERATOR",
    "ReminderRow",
    "ReminderScheduler",
    "after_occurrence",
    "delete_reminder",
    "insert_reminder",
    "reschedule",
    "update_reminder",
]

OPERATOR = "operator"
"""Owner of the reminders in the network's config."""


class ReminderRow(NamedTuple):
    """A reminder. Times are in seconds since the epoch."""

    id: int
    owner: str
    name: str
    thread: str
    text: str
    wakes: tuple[str, ...]
    at: str
    """`when`, as given at `start`."""
    zone: str
    start: float
    due: float
    """When it is due next."""
    until: float | None = None
    times: int | None = None
    paused: bool = False
    problem: str = ""
    untrusted: bool = False

    @property
    def rule(self) -> Rule:
        """Raises `ValueError` if the time zone no longer exists."""
        return parse_when(self.at, zone_of(self.zone), self.start)

    def to_schema(self, *, repeats: bool) -> Reminder:
        return Reminder(
            **{name: value for name, value in self._asdict().items() if name in _UNCHANGED},
            id=f"r{self.id}",
            of=self.owner,
            when=self.at,
            timezone=self.zone,
            thread_id=self.thread,
            state="paused" if self.paused else "active",
            next=None if self.paused else time_of(self.due),
            repeats=repeats,
        )


_UNCHANGED = {"name", "text", "wakes", "until", "times", "problem"}


def day_of(seconds: float) -> str:
    """The date in UTC."""
    return f"{time_of(seconds):%Y-%m-%d}"


async def load(host: Host) -> tuple[dict[int, ReminderRow], dict[str, tuple[str, int]], int]:
    """All reminders by number; by owner, a day and the number of reminders that woke agents on it;
    and the last number used."""
    columns = ", ".join(ReminderRow._fields)
    rows = await host.rows(f"SELECT {columns} FROM schedule_reminder ORDER BY id")
    days = await host.rows("SELECT owner, day, fired FROM schedule_day")
    ((last,),) = await host.rows("SELECT id FROM schedule_last")
    reminders = {row[0]: _row(row) for row in rows}
    return reminders, {who: (day, n) for who, day, n in days}, last


def _row(values: Sequence[Any]) -> ReminderRow:
    # Any: SQLite values, in the order of the fields.
    row = ReminderRow._make(values)
    wakes = tuple(json.loads(values[5]))
    return row._replace(wakes=wakes, paused=bool(row.paused), untrusted=bool(row.untrusted))


def _values(row: ReminderRow) -> dict[str, Value]:
    plain = {
        "wakes": json.dumps(row.wakes),
        "paused": int(row.paused),
        "untrusted": int(row.untrusted),
    }
    return {**row._asdict(), **plain}


def insert_reminder(row: ReminderRow) -> Sequence[Statement]:
    last = Statement("UPDATE schedule_last SET id = max(id, ?)", (row.id,))
    return [insert("schedule_reminder", **_values(row)), last]


def update_reminder(row: ReminderRow) -> Sequence[Statement]:
    """Store the reminder, if it still exists."""
    return [update("schedule_reminder", _values(row), id=row.id)._replace(rows=None)]


def delete_reminder(row: ReminderRow) -> Sequence[Statement]:
    return [Statement("DELETE FROM schedule_reminder WHERE id = ?", (row.id,))]


def put_wake_count(owner: str, day: str, count: int) -> Statement:
    return put("schedule_day", "owner", owner=owner, day=day, fired=count)


def after_occurrence(current: ReminderRow, sent: ReminderRow, now: float) -> ReminderRow | None:
    """The reminder after an occurrence was sent. None if it has ended."""
    if current.due != sent.due:
        return current  # it was resumed in the meantime
    try:
        rule = sent.rule
    except ValueError:
        return current._replace(paused=True, problem=f"the time zone {sent.zone} does not exist")
    times = None if current.times is None else current.times - 1
    due = rule.next(max(now, sent.due)) if rule.repeats else None
    if due is None or times == 0 or (current.until is not None and due > current.until):
        return None
    return current._replace(due=due, times=times)


def reschedule(row: ReminderRow, now: float) -> ReminderRow:
    """The reminder after a restart, in case the clock was set back. An occurrence that was sent is
    not sent again."""
    try:
        rule = row.rule
        due = rule.next(now) if rule.repeats else None
    except ValueError:
        return row
    return row if due is None or row.due <= due else row._replace(due=due)


def remaining(row: ReminderRow, now: float) -> float | None:
    """Remaining seconds of a relative time (`in 10m`, `every 1h`), at most its full length even if
    the clock was set. Negative if it is late. None for a time of day."""
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
"""Seconds before sending is retried after a failure."""
LATE_S = 60.0
"""Delay in seconds from which a reminder mentions that it is late."""


class ReminderScheduler:
    """Sends reminders when they are due. Call `ring` when the alarm rings."""

    def __init__(self, host: Host, daily: Callable[[], int]):
        """`daily` returns how many reminders of one agent can wake agents per day."""
        self._host, self._daily = host, daily
        self._alarm = Alarm(host, "due")
        self.rows: dict[int, ReminderRow] = {}
        self._waits: dict[int, float] = {}
        """Reminders with a relative time: when they are due by the steady clock."""
        self.sending: set[int] = set()
        """Reminders being sent now."""
        self._wake_counts: dict[str, tuple[str, int]] = {}
        """By agent: the day, and how many of its reminders woke agents on it."""
        self._last = 0

    async def load(self) -> None:
        rows, self._wake_counts, self._last = await load(self._host)
        for row in rows.values():
            self._put(reschedule(row, self._host.now()))

    def _put(self, row: ReminderRow) -> None:
        previous = self.rows.get(row.id)
        self.rows[row.id] = row
        if previous is not None and previous.due == row.due and row.id in self._waits:
            return  # already scheduled
        seconds = remaining(row, self._host.now())
        self._waits.pop(row.id, None)
        if seconds is not None:
            self._waits[row.id] = self._host.steady() + seconds

    def _lateness(self, row: ReminderRow) -> float:
        """Seconds since it was due. Negative if it is due in the future."""
        wait = self._waits.get(row.id)
        return self._host.now() - row.due if wait is None else self._host.steady() - wait

    def next_number(self) -> int:
        """A number for a new reminder. Numbers are never reused."""
        self._last += 1
        return self._last

    def put(self, row: ReminderRow) -> None:
        """Schedule a reminder that was stored."""
        self._put(row)
        self.ring_next()

    def remove(self, row: ReminderRow) -> None:
        """Unschedule a reminder that was deleted."""
        self.rows.pop(row.id, None)
        self._waits.pop(row.id, None)

    def ring(self) -> None:
        """Send all reminders that are due."""
        self._alarm.rung()
        for row in list(self.rows.values()):
            if self._lateness(row) >= 0 and not row.paused and row.id not in self.sending:
                self.sending.add(row.id)
                self._host.spawn(self._send(row))
        self.ring_next()

    def ring_next(self) -> None:
        """Set the alarm for the next reminder."""
        waiting = [r for r in self.rows.values() if not r.paused and r.id not in self.sending]
        self._alarm.at(min((r.due for r in waiting if r.id not in self._waits), default=None))
        waits = [-self._lateness(r) for r in waiting if r.id in self._waits]
        if waits:
            self._host.after(max(min(waits), 0.0), "wait")

    async def _send(self, row: ReminderRow) -> None:
        """Send a reminder, and store when it is due next. If the hub crashes in between, it is not
        sent again, because its occurrence is the key of the message."""
        try:
            problem = await self._post(row)
            await self._advance(row, problem)
        except BaseException:
            self._alarm.at(self._host.now() + RETRY_DELAY_S)
            raise
        finally:
            self.sending.discard(row.id)
        self.ring_next()
        if row.owner == OPERATOR:
            self.report(row, problem)

    def report(self, row: ReminderRow, problem: str = "") -> None:
        """Tell owners, once, why a reminder of the config was not sent, or whom it cannot wake."""
        missing = [who for who in row.wakes if not self._host.reads(who, row.thread)]
        if problem:
            problem = f" was not sent: {problem}"
        elif missing:
            who = ", ".join(missing)
            problem = f" cannot wake {who}: no such participant reads {row.thread}."
        else:
            return
        text = f"The reminder {row.name!r} of the config{problem}"
        self._host.notify_owners(text, {"reminder": f"r{row.id}"}, f"{row.id}:{problem}")

    async def _post(self, row: ReminderRow) -> str:
        """Post the message. Returns why it could not be posted, or an empty string."""
        own = thread_ids.direct((row.owner, "hub"))
        if row.owner != OPERATOR and row.thread != own:
            direct = thread_ids.kind_of(row.thread) == "direct"
            if not direct and not self._host.reads(row.owner, row.thread):
                return f"{row.owner} no longer reads {row.thread}"
        wakes, due = row.wakes, time_of(row.due).isoformat()
        text = row.text if row.owner == OPERATOR else f"Reminder of {row.owner}: {row.text}"
        late = self._lateness(row) > LATE_S
        if late:
            text += f"\n(This reminder is late. It was due at {due}.)"
        if self._exceeds_daily_limit(row):
            wakes = ()
            text += f"\n(This wakes no agent: {row.owner}'s reminders reached their daily limit.)"
        try:
            await self._host.open(
                row.thread,
                text,
                {"reminder": f"r{row.id}", "text": row.text, "due": due, "late": late},
                timer_of=row.owner,
                wakes=wakes,
                once=f"{row.id}:{row.due!r}",
                untrusted=row.untrusted,
            )
        except OperationError as error:
            return error.message
        return ""

    def _exceeds_daily_limit(self, row: ReminderRow) -> bool:
        """Whether the owner reached the daily limit of waking reminders. If not, count this one."""
        if row.owner == OPERATOR or self._host.kind_of(row.owner) == "human":
            return False
        today = day_of(self._host.now())
        day, count = self._wake_counts.get(row.owner, (today, 0))
        count = count if day == today else 0
        if count >= self._daily():
            return True
        self._wake_counts[row.owner] = (today, count + 1)
        return False

    async def _advance(self, row: ReminderRow, problem: str) -> None:
        """Store when it is due next. Missed occurrences are skipped."""
        day = self._wake_counts.get(row.owner)
        count = [put_wake_count(row.owner, *day)] if day is not None else []
        advanced = after_occurrence(self.rows.get(row.id, row), row, self._host.now())
        if advanced is None and not problem:
            await self._host.write([*delete_reminder(row), *count])
            self.remove(row)
            return
        updated = advanced or row
        if problem:
            updated = updated._replace(paused=True, problem=problem)
        await self._host.write([*update_reminder(updated), *count])
        if row.id in self.rows:
            self._put(updated)
