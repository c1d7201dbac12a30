"""The settings of the mod `schedule`."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from hubbub.config.units import Id, Section, Span, wrong
from hubbub.mods.api import ModConfig
from hubbub.mods.schedule.table import OPERATOR
from hubbub.mods.schedule.when import parse_when, zone_of
from hubbub.protocol import thread_ids

__all__ = ["DeclaredReminder", "ScheduleConfig"]


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
