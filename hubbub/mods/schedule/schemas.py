"""Inputs and outputs of the mod `schedule`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hubbub.mods.fields import At, Limit, Moment, id_pattern
from hubbub.protocol.messages import Model, Name, TurnRef
from hubbub.protocol.operations import Input, Tainted

ReminderId = Annotated[str, Field(pattern=id_pattern("r"))]
When = Annotated[str, Field(min_length=1, max_length=100)]


class Remind(Input):
    text: Annotated[str, Field(min_length=1, max_length=4000)]
    """What to say when the time has come. Write it so that it is understood by itself."""
    when: When
    """Once: "2026-01-31T09:00", "09:00", "in 10m". Again and again: "every 2h", or cron as
    "0 9 * * 1-5" (minute, hour, day, month, day of the week)."""
    timezone: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """The time zone, such as Europe/Berlin. Left out: the network's."""
    thread: Annotated[str, Field(min_length=1, max_length=700)] | None = None
    """Where to say it: a thread, as channel_desk, or a participant. Left out: where you are, else
    where only you read it."""
    wakes: Annotated[tuple[Name, ...], Field(max_length=32, fail_fast=True)] = ()
    """Ids of those whom it is for: agents are woken by it, people are mentioned. Left out: you."""
    until: Moment | None = None
    """Of one that repeats: when it ends."""
    times: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Of one that repeats: how often at most."""
    cause: TurnRef | None = None
    """The message (m42) or turn that made you ask for it."""
    outside: Tainted = False
    """Whether the text carries content from outside the network."""


class ListReminders(Input):
    everybody: bool = False
    """Those of all participants; for owners."""
    after: ReminderId | None = None
    """Only reminders after this one."""
    limit: Limit = 50
    """How many at most."""


class ReminderOf(Input):
    id: ReminderId
    """The reminder, as list_reminders has it."""


class Reminder(Model):
    id: str
    of: str
    """Whose it is; `operator` for those of the network's config."""
    name: str = ""
    """Of those of the network's config."""
    text: str
    when: str
    """As it was asked for."""
    timezone: str
    thread_id: str
    wakes: tuple[str, ...]
    state: Literal["active", "paused"]
    next: At | None = None
    """When it comes; left out while it is paused."""
    repeats: bool
    until: At | None = None
    times: int | None = None
    """How often it still comes."""
    problem: str = ""
    """Why it was paused, where nobody did that by hand."""


class Reminders(Model):
    reminders: tuple[Reminder, ...]
    """Oldest first."""
    more: bool
    """Whether there are later ones: ask again with `after`."""
