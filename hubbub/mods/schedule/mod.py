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
    """Identifies the reminder when its other settings change."""
    when: Annotated[str, Field(min_length=1, max_length=100)]
    """As in `remind`: `every 2h`, or a cron expression such as `0 9 * * 1-5`."""
    thread: Annotated[str, Field(min_length=1, max_length=200)]
    """The thread of a channel, such as channel_desk, or broadcast."""
    text: Annotated[str, Field(min_length=1, max_length=4000)]
    """The message to send."""
    wakes: tuple[Id, ...] = ()
    """Ids of agents to wake and people to mention."""

    @field_validator("thread")
    @classmethod
    def _public(cls, value: str) -> str:
        thread = thread_ids.canonical(value, OPERATOR)
        if thread is None or thread_ids.kind_of(thread) not in ("channel", "broadcast"):
            raise wrong(f"expected a channel's thread, such as channel_desk, not {value!r:.100}")
        return thread


class ScheduleConfig(ModConfig):
    timezone: str = "UTC"
    """Default time zone: a name such as Europe/Berlin."""
    each: Annotated[int, Field(ge=1, le=10_000)] = 20
    """Maximum number of reminders per participant."""
    shortest: Span = 60.0
    """Minimum seconds between two occurrences, and before an agent's first one."""
    daily: Annotated[int, Field(ge=0)] = 50
    """Maximum number of waking reminders per agent and day (UTC). Further ones are sent without
    waking agents."""
    reminders: tuple[DeclaredReminder, ...] = ()
    """Reminders of the network itself."""

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        try:
            zone = zone_of(self.timezone)
        except ValueError as error:
            raise wrong(f"timezone: {error}") from None
        names = [each.name for each in self.reminders]
        for each in self.reminders:
            if names.count(each.name) > 1:
                raise wrong(f"reminders: {each.name!r} is listed twice")
            try:
                rule = parse_when(each.when, zone, 0.0)
            except ValueError as error:
                raise wrong(f"reminders.{each.name}.when: {error}") from None
            if not rule.repeats:
                raise wrong(f"reminders.{each.name}.when: expected a repeating time")
        return self


class ScheduleMod(Mod):
    """Reminders, once or repeating, for oneself and for others.

    When a reminder is due, the hub posts it in its thread and wakes the agents it is for. That
    opens an interaction with its own budget: a person's, or half of it if an agent set the
    reminder.
    """

    name = "schedule"
    Config = ScheduleConfig
    config: ScheduleConfig
    migrations = "tables"

    def __init__(self, config: ScheduleConfig):
        super().__init__(config)
        self._scheduler: ReminderScheduler
        self._pending = Counter[str]()
        """By participant: reminders that are being stored."""

    async def start(self) -> None:
        self._scheduler = ReminderScheduler(self.host, lambda: self.config.daily)
        await self._scheduler.load()
        await self._declare(self.config)
        self._scheduler.ring_next()

    def reconfigure(self, config: ModConfig) -> None:
        super().reconfigure(config)
        self.host.spawn(self._declare(self.config))

    async def _declare(self, config: ScheduleConfig) -> None:
        """Store the reminders of the config, and delete those that were removed from it. One that
        could not be sent starts anew."""
        wanted = {each.name: each for each in config.reminders}
        stored = {row.name: row for row in self._scheduler.rows.values() if row.owner == OPERATOR}
        for name in stored.keys() - wanted.keys():
            await self.host.write(repository.delete_reminder(stored[name]))
            self._scheduler.remove(stored[name])
        for name, each in wanted.items():
            old = stored.get(name)
            new = (each.thread, each.text, each.wakes, each.when, config.timezone)
            if (
                old is not None
                and not old.problem
                and new == (old.thread, old.text, old.wakes, old.at, old.zone)
            ):
                continue
            row = self._declared(self._scheduler.next_number(), each, config)
            delete = repository.delete_reminder(old) if old is not None else []
            await self.host.write([*delete, *repository.insert_reminder(row)])
            if old is not None:
                self._scheduler.remove(old)
            self._scheduler.put(row)
            self._scheduler.report(row)

    def _declared(self, id: int, each: DeclaredReminder, config: ScheduleConfig) -> ReminderRow:
        now, zone = self.host.now(), config.timezone
        due = parse_when(each.when, zone_of(zone), now).next(now) or now
        return ReminderRow(
            id, OPERATOR, each.name, each.thread, each.text, each.wakes, each.when, zone, now, due
        )

    # Operations -----------------------------------------------------------------------------

    @operation(permission="write", output=Reminder)
    async def remind(self, call: Calling, args: Remind) -> Commit:
        """Set a reminder for yourself or others. When it is due, its text is posted in the thread
        and wakes the agents it is for. To come back to something later, set one for yourself and
        finish."""
        now, zone = self.host.now(), args.timezone or self.config.timezone
        rule, due = self._rule(call, args, zone, now)
        cause = None
        if args.cause is not None:
            cause = await self.host.message(call, _message_of(args.cause))
        self._check_number(call.participant)
        thread = self._thread(call, args, cause)
        wakes = self._recipients(call, args, thread)
        row = ReminderRow(
            self._scheduler.next_number(), call.participant, "", thread, args.text, wakes,
            " ".join(args.when.split()), zone, now, due,
            args.until.timestamp() if args.until else None,
            args.times, untrusted=args.untrusted or (cause is not None and cause.untrusted),
        )  # fmt: skip
        self._pending[row.owner] += 1
        return Commit(
            repository.insert_reminder(row),
            row.to_schema(repeats=rule.repeats),
            applied=partial(self._scheduler.put, row),
            released=partial(self._pending.subtract, [row.owner]),
        )

    def _check_number(self, owner: str) -> None:
        """Raises `OperationError` if the owner has the maximum number, including pending ones."""
        mine = sum(row.owner == owner for row in self._scheduler.rows.values())
        if mine + self._pending[owner] >= self.config.each:
            raise over_limit(
                f"you have {self.config.each} reminders, which is the limit; cancel one first"
            )

    def _rule(self, call: Calling, args: Remind, zone: str, now: float) -> tuple[Rule, float]:
        """The rule, and the first occurrence. Raises `OperationError`."""
        try:
            rule = parse_when(args.when, zone_of(zone), now)
        except ValueError as error:
            raise bad_request(f"when: {error}") from None
        due, shortest = rule.next(now), self.config.shortest
        if due is None:
            raise bad_request(f"when: {args.when!r} never occurs")
        if rule.shortest(now) < shortest or (call.kind != "human" and due - now < shortest):
            raise bad_request(
                f"when: {args.when!r} is too soon or too frequent; the minimum delay and interval "
                f"is {shortest:g} seconds"
            )
        if not rule.repeats and (args.until or args.times):
            text = "until and times are only for repeating reminders"
            raise bad_request(text)
        if args.until is not None and args.until.timestamp() < due:
            raise bad_request("until: is before the first occurrence")
        return rule, due

    def _thread(self, call: Calling, args: Remind, cause: Message | None) -> str:
        """The thread to post in. Raises `OperationError`."""
        if args.thread is not None:
            thread = self.host.place(call, args.thread)
        elif cause is not None:
            thread = cause.thread_id
        else:
            thread = thread_ids.direct((call.participant, "hub"))
        if thread_ids.kind_of(thread) == "mod":
            raise forbidden("thread: only its mod can post there; choose another, or omit it")
        return thread

    def _recipients(self, call: Calling, args: Remind, thread: str) -> tuple[str, ...]:
        """The recipients. Raises `OperationError` for one who does not read the thread."""
        for who in args.wakes:
            alone = thread == thread_ids.direct((call.participant, "hub"))
            if who != call.participant and (alone or not self.host.reads(who, thread)):
                raise OperationError(
                    ErrorCode.UNKNOWN_PARTICIPANT,
                    f"wakes: {who[:64]!r} does not read {thread}",
                )
        return tuple(dict.fromkeys(args.wakes)) or (call.participant,)

    @operation()
    def list_reminders(self, call: Calling, args: ListReminders) -> Reminders:
        """List your reminders with their next due times; for an owner also those of the network."""
        if args.everybody and not call.owner:
            text = "everybody: only owners of the network can list the reminders of others"
            raise forbidden(text)
        after = int(args.after[1:]) if args.after else 0
        own = (call.participant, OPERATOR) if call.owner else (call.participant,)
        rows = [
            row
            for id, row in sorted(self._scheduler.rows.items())
            if id > after and (args.everybody or row.owner in own)
        ]
        page, more = page_of(rows, args.limit)
        return Reminders(reminders=tuple(self._schema(row) for row in page), more=more)

    def _schema(self, row: ReminderRow) -> Reminder:
        try:
            return row.to_schema(repeats=row.rule.repeats)
        except ValueError:  # its time zone no longer exists
            return row.to_schema(repeats=True)

    def _find(self, call: Calling, id: str) -> ReminderRow:
        """A reminder of the caller, or any for owners. Raises `OperationError`."""
        row = self._scheduler.rows.get(int(id[1:]))
        if row is not None and (row.owner == call.participant or call.owner):
            return row
        raise not_found(f"there is no reminder {id} of yours; see list_reminders")

    @operation(permission="write", output=Reminder)
    def cancel_reminder(self, call: Calling, args: ReminderOf) -> Commit:
        """Cancel one of your reminders."""
        row = self._find(call, args.id)
        if row.owner == OPERATOR:
            raise forbidden(f"{args.id} is defined in the network's config; pause it instead")
        return Commit(
            repository.delete_reminder(row),
            self._schema(row),
            applied=partial(self._scheduler.remove, row),
        )

    @operation(permission="write", idempotent=True, output=Reminder)
    def pause_reminder(self, call: Calling, args: ReminderOf) -> Commit:
        """Pause one of your reminders until you resume it."""
        row = self._find(call, args.id)._replace(paused=True, problem="")
        return self._update(row)

    @operation(permission="write", idempotent=True, output=Reminder)
    def resume_reminder(self, call: Calling, args: ReminderOf) -> Commit:
        """Resume one of your paused reminders at its next due time. A one-time reminder whose time
        has passed is sent immediately."""
        row, now = self._find(call, args.id), self.host.now()
        try:
            due = row.rule.next(now) if row.rule.repeats else None
        except ValueError as error:
            raise bad_request(f"it cannot be scheduled: {error}") from None
        if row.paused:
            row = row._replace(paused=False, problem="", due=due or row.due)
        return self._update(row)

    def _update(self, row: ReminderRow) -> Commit:
        return Commit(
            repository.update_reminder(row),
            self._schema(row),
            applied=partial(self._scheduler.put, row),
        )

    # Hooks ----------------------------------------------------------------------------------

    def on_timer(self, key: str) -> None:
        self._scheduler.ring()


def _message_of(cause: str) -> str:
    """The message of a cause: the message itself, or the one that started the turn."""
    return cause.rpartition("-")[2]
