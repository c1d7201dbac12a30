"""Reminders, for oneself and for others."""

from __future__ import annotations

from hubbub.mods.schedule.schemas import Reminder
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.figures import moment
from hubbub.people.shown import NoteLine, done

__all__ = ["COMMANDS"]


def set_(found: Reminder, person: PersonClient) -> list[NoteLine]:
    return done(f"{found.id}  {_next(found)}  {person.shown(found.thread_id)}")


def cancelled(found: Reminder, person: PersonClient) -> list[NoteLine]:
    return done(f"{found.id} is cancelled")


def _next(reminder: Reminder) -> str:
    if reminder.next is None:
        return f"paused: {reminder.problem}" if reminder.problem else "paused"
    return moment(reminder.next)


COMMANDS = (
    Command("reminders list", "list_reminders", columns=(
        "reminder=id", "of", "state", "next", "when", "thread_id", "text", "problem")),
    Command("reminders set", "remind", set_, order=("when", "text"),
            about="Set a reminder, for yourself or for others, once or again and again."),
    Command("reminders pause", "pause_reminder", set_),
    Command("reminders resume", "resume_reminder", set_),
    Command("reminders cancel", "cancel_reminder", cancelled),
)  # fmt: skip
