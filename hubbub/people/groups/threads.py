"""Threads: listed, titled, resolved, followed, muted."""

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
"""Columns of a thread's last message."""


def listed(found: ThreadList, person: PersonClient) -> list[NoteLine]:
    """Threads and their last messages, most recently active first."""
    rows = (
        (
            person.shown(each.id),
            str(each.head),
            moment(each.messages[-1].sent_at),
            f"{each.messages[-1].sender_id}: {clip(one_line(each.messages[-1].text), LAST)}",
        )
        for each in found.threads
        if each.messages
    )
    notes = table(("THREAD", "MESSAGES", "LAST", ""), rows)
    return paged(notes, found.more, "there are others; see --limit")


def state(found: ThreadState, person: PersonClient) -> list[NoteLine]:
    is_ = "open" if found.resolved_by is None else f"resolved by {found.resolved_by}"
    called = f": {one_line(found.title)}" if found.title else ""
    return done(f"{person.shown(found.thread_id)} is {is_}{called}")


def choice(found: ThreadChoice, person: PersonClient) -> list[NoteLine]:
    """Whether it is followed or muted, and where that was said."""
    is_ = "followed" if found.followed else "muted" if found.muted else "neither followed nor muted"
    above = found.chosen_in if found.chosen_in != found.thread_id else None
    where = f", as {person.shown(above)} is" if above is not None else ""
    return done(f"{person.shown(found.thread_id)} is {is_}{where}")


COMMANDS = (
    Command("threads list", "list_threads", listed, where="shell",
            about="List your threads, most recently active first."),
    Command("threads replies", "list_thread_info", here=True, columns=(
        "thread_id", "title", "begins=automatic", "replies", "last_at", "resolved_by", "followed",
        "muted"),
            about="List reply threads: titles, and which are resolved, followed or muted."),
    Command("threads title", "set_thread_title", state, here=True, order=("thread", "title")),
    Command("threads resolve", "resolve_thread", state, here=True, order=("thread",)),
    Command("threads reopen", "reopen_thread", state, here=True, order=("thread",)),
    Command("threads follow", "follow_thread", choice, here=True, order=("thread",)),
    Command("threads unfollow", "unfollow_thread", choice, here=True, order=("thread",)),
    Command("threads mute", "mute_thread", choice, here=True, order=("thread",)),
    Command("threads unmute", "unmute_thread", choice, here=True, order=("thread",)),
)  # fmt: skip
