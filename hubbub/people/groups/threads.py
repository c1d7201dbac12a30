"""Threads: list, title, resolve, follow and mute."""

from __future__ import annotations

from hubbub.mods.threads.schemas import ThreadChoice, ThreadState
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.figures import moment
from hubbub.people.shown import NoteLine, done, paged, table
from hubbub.people.text import clip, one_line
from hubbub.protocol.operations import ThreadList

__all__ = ["COMMANDS"]

LAST = 60
"""Columns shown of a thread's last message."""


def listed(answer: ThreadList, person: PersonClient) -> list[NoteLine]:
    """Threads and their last messages, most recently active first."""
    rows = (
        (
            person.shown(each.id),
            str(each.head),
            moment(each.messages[-1].sent_at),
            f"{each.messages[-1].sender_id}: {clip(one_line(each.messages[-1].text), LAST)}",
        )
        for each in answer.threads
        if each.messages
    )
    notes = table(("THREAD", "MESSAGES", "LAST", ""), rows)
    return paged(notes, answer.more, "there are more; see --limit")


def state(answer: ThreadState, person: PersonClient) -> list[NoteLine]:
    is_ = "open" if answer.resolved_by is None else f"resolved by {answer.resolved_by}"
    title = f": {one_line(answer.title)}" if answer.title else ""
    return done(f"{person.shown(answer.thread_id)} is {is_}{title}")


def choice(answer: ThreadChoice, person: PersonClient) -> list[NoteLine]:
    """Whether a thread is followed or muted, and which thread above set that."""
    is_ = (
        "followed" if answer.followed else "muted" if answer.muted else "neither followed nor muted"
    )
    above = answer.chosen_in if answer.chosen_in != answer.thread_id else None
    where = f", as {person.shown(above)} is" if above is not None else ""
    return done(f"{person.shown(answer.thread_id)} is {is_}{where}")


COMMANDS = (
    Command("threads list", "list_threads", listed, where="shell",
            about="List your threads, most recently active first."),
    Command("threads replies", "list_thread_info", here=True, columns=(
        "thread_id", "title", "begins=automatic", "replies", "last_at", "resolved_by", "followed",
        "muted"),
            about="List reply threads: title, and whether resolved, followed or muted."),
    Command("threads title", "set_thread_title", state, here=True, order=("thread", "title")),
    Command("threads resolve", "resolve_thread", state, here=True, order=("thread",)),
    Command("threads reopen", "reopen_thread", state, here=True, order=("thread",)),
    Command("threads follow", "follow_thread", choice, here=True, order=("thread",)),
    Command("threads unfollow", "unfollow_thread", choice, here=True, order=("thread",)),
    Command("threads mute", "mute_thread", choice, here=True, order=("thread",)),
    Command("threads unmute", "unmute_thread", choice, here=True, order=("thread",)),
)  # fmt: skip
