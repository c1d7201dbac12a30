"""The mod `schedule`: reminders that open an interaction of their own.

mods:
  - schedule:
      timezone: Europe/Berlin
      reminders:
        - name: morning
          when: "0 9 * * 1-5"
          thread: channel_desk
          text: Good morning. What is open for today?
          wakes: [editor]
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from hubbub.config.units import Id, Section, Span, wrong
from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.operation import (
    Calling,
    Commit,
    bad_request,
    forbidden,
    not_found,
    operation,
    over_limit,
)
from hubbub.mods.repository import page_of
from hubbub.mods.schedule import repository
from hubbub.mods.schedule.repository import OPERATOR, ReminderRow, ReminderScheduler
from hubbub.mods.schedule.schemas import ListReminders, Remind, Reminder, ReminderOf, Reminders
from hubbub.mods.schedule.when import Rule, parse_when, zone_of
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message

__all__ = ["ScheduleConfig", "ScheduleMod"]


class DeclaredReminder(Section):
    name: Id
    """What it is known by: change the rest under the same name, and it is the same reminder."""
    when: Annotated[str, Field(min_length=1, max_length=100)]
    """As in `remind`: `every 2h`, or cron as `0 9 * * 1-5`."""
    thread: Annotated[str, Field(min_length=1, max_length=200)]
    """A channel's thread, as channel_desk, or broadcast."""
    text: Annotated[str, Field(min_length=1, max_length=4000)]
    """What to say."""
    wakes: tuple[Id, ...] = ()
    """Agents that are woken by it, people who are mentioned."""

    @field_validator("thread")
    @classmethod
    def _public(cls, value: str) -> str:
        found = thread_ids.canonical(value, OPERATOR)
        if found is None or thread_ids.kind_of(found) not in ("channel", "broadcast"):
            raise wrong(f"expected the thread of a channel, as channel_desk, not {value!r:.100}")
        return found


class ScheduleConfig(ModConfig):
    timezone: str = "UTC"
    """Whose clock is meant where nobody says: a name as Europe/Berlin."""
    each: Annotated[int, Field(ge=1, le=10_000)] = 20
    """Reminders that one participant may have at a time."""
    shortest: Span = 60.0
    """Seconds between two occurrences of a reminder; an agent sets none that comes sooner."""
    daily: Annotated[int, Field(ge=0)] = 50
    """How often a day (UTC) reminders of one agent may wake somebody. What comes after is said and
    wakes nobody."""
    reminders: tuple[DeclaredReminder, ...] = ()
    """Those of the network itself."""

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        try:
            zone = zone_of(self.timezone)
        except ValueError as error:
            raise wrong(f"timezone: {error}") from None
        names = [each.name for each in self.reminders]
        for each in self.reminders:
            if names.count(each.name) > 1:
                raise wrong(f"reminders: {each.name!r} is there twice")
            try:
                rule = parse_when(each.when, zone, 0.0)
            except ValueError as error:
                raise wrong(f"reminders.{each.name}.when: {error}") from None
            if not rule.repeats:
                raise wrong(f"reminders.{each.name}.when: expected one that repeats")
        return self


class ScheduleMod(Mod):
    """Reminders: once at a time, or again and again, for oneself and for others.

    When one comes, the hub says it in its thread and wakes the agents that it is for. That opens an
    interaction with a budget of its own: a person's, or half of that where an agent has set it.
    """

    name = "schedule"
    Config = ScheduleConfig
    config: ScheduleConfig
    migrations = "tables"

    def __init__(self, config: ScheduleConfig):
        super().__init__(config)
        self._scheduler: ReminderScheduler
        self._setting = Counter[str]()
        """By participant: reminders that are on their way into the table."""

    async def start(self) -> None:
        self._scheduler = ReminderScheduler(self.host, lambda: self.config.daily)
        await self._scheduler.load()
        await self._declare(self.config)
        self._scheduler.ring_next()

    def reconfigure(self, config: ModConfig) -> None:
        super().reconfigure(config)
        self.host.spawn(self._declare(self.config))

    async def _declare(self, config: ScheduleConfig) -> None:
        """Bring the reminders of the config into the table, and those that left it out of it."""
        wanted = {each.name: each for each in config.reminders}
        known = {row.name: row for row in self._scheduler.rows.values() if row.owner == OPERATOR}
        for name in known.keys() - wanted.keys():
            await self.host.keep(repository.deleted(known[name]))
            self._scheduler.dropped(known[name])
        for name, each in wanted.items():
            old = known.get(name)
            told = (each.thread, each.text, each.wakes, each.when, config.timezone)
            if old is not None and told == (old.thread, old.text, old.wakes, old.at, old.zone):
                continue
            row = self._declared(self._scheduler.number(), each, config)
            gone = repository.deleted(old) if old is not None else []
            await self.host.keep([*gone, *repository.inserted(row)])
            if old is not None:
                self._scheduler.dropped(old)
            self._scheduler.took(row)

    def _declared(self, id: int, each: DeclaredReminder, config: ScheduleConfig) -> ReminderRow:
        now, zone = self.host.now(), config.timezone
        due = parse_when(each.when, zone_of(zone), now).next(now) or now
        return ReminderRow(
            id, OPERATOR, each.name, each.thread, each.text, each.wakes, each.when, zone, now, due
        )

    # What people and agents ask -------------------------------------------------------------

    @operation(permission="write", output=Reminder)
    async def remind(self, call: Calling, args: Remind) -> Commit:
        """Set a reminder, for yourself or for others: at its time the text is said in the thread,
        and wakes the agents that it is for. To look at something again later, set one for yourself
        and finish."""
        now, zone = self.host.now(), args.timezone or self.config.timezone
        rule, due = self._rule(call, args, zone, now)
        cause = None
        if args.cause is not None:
            cause = await self.host.message(call, _message_of(args.cause))
        self._check_number(call.participant)
        thread = self._thread(call, args, cause)
        wakes = self._whom(call, args, thread)
        row = ReminderRow(
            self._scheduler.number(), call.participant, "", thread, args.text, wakes,
            " ".join(args.when.split()), zone, now, due,
            args.until.timestamp() if args.until else None,
            args.times, outside=args.outside or (cause is not None and cause.outside),
        )  # fmt: skip
        self._setting[row.owner] += 1
        return Commit(
            repository.inserted(row),
            row.to_schema(repeats=rule.repeats),
            applied=partial(self._scheduler.took, row),
            released=partial(self._setting.subtract, [row.owner]),
        )

    def _check_number(self, owner: str) -> None:
        """Raises `OperationError` if it has as many as one may have, or will have in a moment."""
        mine = sum(row.owner == owner for row in self._scheduler.rows.values())
        if mine + self._setting[owner] >= self.config.each:
            raise over_limit(
                f"you have {self.config.each} reminders, as many as one may have: cancel one"
            )

    def _rule(self, call: Calling, args: Remind, zone: str, now: float) -> tuple[Rule, float]:
        """When it comes, and when first. Raises `OperationError`."""
        try:
            rule = parse_when(args.when, zone_of(zone), now)
        except ValueError as error:
            raise bad_request(f"when: {error}") from None
        due, shortest = rule.next(now), self.config.shortest
        if due is None:
            raise bad_request(f"when: {args.when!r} never comes")
        if rule.shortest(now) < shortest or (call.kind != "human" and due - now < shortest):
            raise bad_request(
                f"when: {args.when!r} comes too soon; there are at least {shortest:g} seconds "
                "before it, and between two times"
            )
        if not rule.repeats and (args.until or args.times):
            text = "until and times are for reminders that repeat; this one comes once"
            raise bad_request(text)
        if args.until is not None and args.until.timestamp() < due:
            raise bad_request("until: it would never come")
        return rule, due

    def _thread(self, call: Calling, args: Remind, cause: Message | None) -> str:
        """Where it is said. Raises `OperationError`."""
        if args.thread is not None:
            found = self.host.place(call, args.thread)
        elif cause is not None:
            found = cause.thread_id
        else:
            found = thread_ids.direct((call.participant, "hub"))
        if thread_ids.kind_of(found) == "mod":
            text = "thread: only the mod itself speaks there; choose another, or leave it out"
            raise forbidden(text)
        return found

    def _whom(self, call: Calling, args: Remind, thread: str) -> tuple[str, ...]:
        """Whom it is for. Raises `OperationError` for one who would not read it."""
        for who in args.wakes:
            alone = thread == thread_ids.direct((call.participant, "hub"))
            if who != call.participant and (alone or not self.host.reads(who, thread)):
                raise OperationError(
                    ErrorCode.UNKNOWN_PARTICIPANT,
                    f"wakes: {who[:64]!r} is nobody who reads {thread}",
                )
        return tuple(dict.fromkeys(args.wakes)) or (call.participant,)

    @operation()
    def list_reminders(self, call: Calling, args: ListReminders) -> Reminders:
        """List your reminders, and when each is next due."""
        if args.everybody and not call.owner:
            text = "everybody: only an owner of the network sees the reminders of others"
            raise forbidden(text)
        after = int(args.after[1:]) if args.after else 0
        found = [
            row
            for id, row in sorted(self._scheduler.rows.items())
            if id > after and (args.everybody or row.owner == call.participant)
        ]
        page, more = page_of(found, args.limit)
        return Reminders(reminders=tuple(self._schema(row) for row in page), more=more)

    def _schema(self, row: ReminderRow) -> Reminder:
        try:
            return row.to_schema(repeats=row.rule.repeats)
        except ValueError:  # its time zone is not known any more
            return row.to_schema(repeats=True)

    def _find(self, call: Calling, id: str) -> ReminderRow:
        """A reminder of the caller's, for owners any. Raises `OperationError`."""
        row = self._scheduler.rows.get(int(id[1:]))
        if row is not None and (row.owner == call.participant or call.owner):
            return row
        raise not_found(f"there is no reminder {id} of yours; see list_reminders")

    @operation(permission="write", output=Reminder)
    def cancel_reminder(self, call: Calling, args: ReminderOf) -> Commit:
        """Cancel one of your reminders."""
        row = self._find(call, args.id)
        if row.owner == OPERATOR:
            text = f"{args.id} stands in the network's config, which would bring it back; pause it"
            raise forbidden(text)

        return Commit(
            repository.deleted(row),
            self._schema(row),
            applied=partial(self._scheduler.dropped, row),
        )

    @operation(permission="write", idempotent=True, output=Reminder)
    def pause_reminder(self, call: Calling, args: ReminderOf) -> Commit:
        """Pause one of your reminders until you resume it."""
        row = self._find(call, args.id)._replace(paused=True, problem="")
        return self._changed(row)

    @operation(permission="write", idempotent=True, output=Reminder)
    def resume_reminder(self, call: Calling, args: ReminderOf) -> Commit:
        """Resume one of your paused reminders, at its next time. One that comes once and
        whose time has passed comes at once."""
        row, now = self._find(call, args.id), self.host.now()
        try:
            due = row.rule.next(now) if row.rule.repeats else None
        except ValueError as error:
            raise bad_request(f"it cannot come: {error}") from None
        if row.paused:
            row = row._replace(paused=False, problem="", due=due or row.due)
        return self._changed(row)

    def _changed(self, row: ReminderRow) -> Commit:
        return Commit(
            repository.updated(row), self._schema(row), applied=partial(self._scheduler.took, row)
        )

    # When the time has come -----------------------------------------------------------------

    def on_timer(self, key: str) -> None:
        self._scheduler.ring()


def _message_of(cause: str) -> str:
    """The message that a cause means: itself, or the one that a turn was begun for."""
    return cause.rpartition("-")[2]
