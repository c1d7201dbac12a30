"""Inputs and outputs of the mod `schedule`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hubbub.mods.fields import At, Limit, Moment, id_pattern
from hubbub.protocol.messages import Model, Name, TurnRef
from hubbub.protocol.operations import Input, Untrusted

ReminderId = Annotated[str, Field(pattern=id_pattern("r"))]
When = Annotated[str, Field(min_length=1, max_length=100)]


class Remind(Input):
    text: Annotated[str, Field(min_length=1, max_length=4000)]
    """The message to send when the reminder is due. Make it understandable without context."""
    when: When
    """Once: "2026-01-31T09:00", "09:00", "in 10m". Repeatedly: "every 2h", or a cron expression
    such as "0 9 * * 1-5" (minute, hour, day, month, day of the week)."""
    timezone: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """The time zone, such as Europe/Berlin. Default: the network's."""
    thread: Annotated[str, Field(min_length=1, max_length=700)] | None = None
    """Where to send it: a thread, such as channel_desk, or a participant. Default: an agent's
    current thread; for a person, one that only they read."""
    wakes: Annotated[tuple[Name, ...], Field(max_length=32, fail_fast=True)] = ()
    """Ids of the recipients: it wakes agents and mentions people. Default: you."""
    until: Moment | None = None
    """When a repeating reminder ends."""
    times: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Maximum number of repetitions."""
    cause: TurnRef | None = None
    """The message (m42) or turn that caused you to create it."""
    untrusted: Untrusted = False
    """Whether the text carries content from outside the network."""


class ListReminders(Input):
    everybody: bool = False
    """Whether to list the reminders of all participants. For owners."""
    after: ReminderId | None = None
    """Only reminders after this one."""
    limit: Limit = 50
    """Maximum number of results."""


class ReminderOf(Input):
    id: ReminderId
    """The id of the reminder, from list_reminders."""


class Reminder(Model):
    id: str
    of: str
    """The participant it belongs to; `operator` if it is defined in the network's config."""
    name: str = ""
    """Set if it is defined in the network's config."""
    text: str
    when: str
    """As given when it was created."""
    timezone: str
    thread_id: str
    wakes: tuple[str, ...]
    state: Literal["active", "paused"]
    next: At | None = None
    """When it is due next. Omitted while it is paused."""
    repeats: bool
    until: At | None = None
    times: int | None = None
    """Number of remaining repetitions."""
    problem: str = ""
    """Why it was paused, if that was automatic."""


class Reminders(Model):
    reminders: tuple[Reminder, ...]
    """Oldest first."""
    more: bool
    """Whether there are later ones. To get them, call again with `after`."""
