"""Reminders, for yourself and for others."""

from __future__ import annotations

from hubbub.mods.schedule.schemas import Reminder
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.figures import moment
from hubbub.people.shown import NoteLine, done

__all__ = ["COMMANDS"]


def set_(answer: Reminder, person: PersonClient) -> list[NoteLine]:
    return done(f"{answer.id}  {_next(answer)}  {person.shown(answer.thread_id)}")


def cancelled(answer: Reminder, person: PersonClient) -> list[NoteLine]:
    return done(f"cancelled {answer.id}")


def _next(reminder: Reminder) -> str:
    if reminder.next is None:
        return f"paused: {reminder.problem}" if reminder.problem else "paused"
    return moment(reminder.next)


COMMANDS = (
    Command("reminders list", "list_reminders", columns=(
        "reminder=id", "of", "state", "next", "when", "thread_id", "text", "problem")),
    Command("reminders set", "remind", set_, order=("when", "text"),
            about="Set a reminder, for yourself or others, once or recurring."),
    Command("reminders pause", "pause_reminder", set_),
    Command("reminders resume", "resume_reminder", set_),
    Command("reminders cancel", "cancel_reminder", cancelled),
)  # fmt: skip
