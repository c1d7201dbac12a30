"""Reminders, for oneself and for others."""

from __future__ import annotations

from hubbub.mods.schedule.schemas import Reminder, Reminders
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.figures import moment
from hubbub.people.shown import NoteLine, done, paged, table

__all__ = ["COMMANDS"]


def listed(found: Reminders, person: PersonClient) -> list[NoteLine]:
    if not found.reminders:
        return [NoteLine("no reminders")]
    rows = [
        (each.id, each.of, _next(each), each.when, person.shown(each.thread_id), each.text)
        for each in found.reminders
    ]
    notes = table(("REMINDER", "OF", "NEXT", "WHEN", "THREAD", ""), rows)
    return paged(notes, found.more, f"there are later ones: --after {found.reminders[-1].id}")


def set_(found: Reminder, person: PersonClient) -> list[NoteLine]:
    return done(f"{found.id}  {_next(found)}  {person.shown(found.thread_id)}")


def cancelled(found: Reminder, person: PersonClient) -> list[NoteLine]:
    return done(f"{found.id} is cancelled")


def _next(reminder: Reminder) -> str:
    if reminder.next is None:
        return f"paused: {reminder.problem}" if reminder.problem else "paused"
    return moment(reminder.next)


COMMANDS = (
    Command("reminders list", "list_reminders", listed),
    Command("reminders set", "remind", set_, order=("when", "text"),
            about="Set a reminder, for yourself or for others, once or again and again."),
    Command("reminders pause", "pause_reminder", set_),
    Command("reminders resume", "resume_reminder", set_),
    Command("reminders cancel", "cancel_reminder", cancelled),
)  # fmt: skip
