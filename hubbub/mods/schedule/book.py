"""All reminders of a network while it runs: when they come, what is said then, how they go on."""

from __future__ import annotations

from collections.abc import Callable

from hubbub.errors import OperationError
from hubbub.mods.alarm import Alarm
from hubbub.mods.host import Host
from hubbub.mods.schedule import table
from hubbub.mods.schedule.course import by_the_clock, following, left
from hubbub.mods.schedule.table import OPERATOR, Row
from hubbub.mods.times import time_of
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode

__all__ = ["Book"]

AGAIN_S = 5.0
"""Seconds until what the store has refused is tried again."""
LATE_S = 60.0
"""Seconds after which a reminder says that it is late."""


class Book:
    """Knows all reminders; `ring` is called when the alarm rings."""

    def __init__(self, host: Host, daily: Callable[[], int]):
        """`daily` tells how often a day reminders of one agent may wake somebody."""
        self._host, self._daily = host, daily
        self._alarm = Alarm(host, "due")
        self.rows: dict[int, Row] = {}
        self._waits: dict[int, float] = {}
        """Those that come when so much time has passed: when that is by the steady clock."""
        self.coming: set[int] = set()
        """Those that are being said now."""
        self._fired: dict[str, tuple[str, int]] = {}
        """By agent: the day, and how often its reminders woke somebody on it."""
        self._last = 0

    async def load(self) -> None:
        rows, self._fired, self._last = await table.load(self._host)
        for row in rows.values():
            self._put(by_the_clock(row, self._host.now()))

    def _put(self, row: Row) -> None:
        known = self.rows.get(row.id)
        self.rows[row.id] = row
        if known is not None and known.due == row.due and row.id in self._waits:
            return  # it waits already
        seconds = left(row, self._host.now())
        self._waits.pop(row.id, None)
        if seconds is not None:
            self._waits[row.id] = self._host.steady() + seconds

    def _late(self, row: Row) -> float:
        """Seconds since it should have come; below zero: it comes in so many."""
        wait = self._waits.get(row.id)
        return self._host.now() - row.due if wait is None else self._host.steady() - wait

    def number(self) -> int:
        """For a new one; no number is given twice."""
        self._last += 1
        return self._last

    def took(self, row: Row) -> None:
        """The reminder stands in the table like this."""
        self._put(row)
        self.ring_next()

    def dropped(self, row: Row) -> None:
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

    async def _come(self, row: Row) -> None:
        """Say it, and write down when it comes next. What was said before a crash that kept this
        from being written is not said again: its occurrence is the key."""
        try:
            problem = await self._say(row)
            await self._go_on(row, problem)
        except BaseException:
            self._alarm.at(self._host.now() + AGAIN_S)
            raise
        finally:
            self.coming.discard(row.id)
        self.ring_next()
        if problem and row.owner == OPERATOR:
            raise OperationError(ErrorCode.REJECTED, f"the reminder {row.name!r}: {problem}")

    async def _say(self, row: Row) -> str:
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

    def _spent(self, row: Row) -> bool:
        """Whether reminders of this agent have woken as often today as they may; if not, this one
        is counted."""
        if row.owner == OPERATOR or self._host.kind_of(row.owner) == "human":
            return False
        today = table.day_of(self._host.now())
        day, count = self._fired.get(row.owner, (today, 0))
        count = count if day == today else 0
        if count >= self._daily():
            return True
        self._fired[row.owner] = (today, count + 1)
        return False

    async def _go_on(self, row: Row, problem: str) -> None:
        """Write down when it comes next: once for all that was missed."""
        day = self._fired.get(row.owner)
        count = [table.fired(row.owner, *day)] if day is not None else []
        goes_on = following(self.rows.get(row.id, row), row, self._host.now())
        if goes_on is None and not problem:
            await self._host.keep([*table.deleted(row), *count])
            self.dropped(row)
            return
        after = goes_on or row
        if problem:
            after = after._replace(paused=True, problem=problem)
        await self._host.keep([*table.updated(after), *count])
        if row.id in self.rows:
            self._put(after)
