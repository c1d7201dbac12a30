"""Inputs and outputs of the mod `threads`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from hubbub.mods.fields import At, Position
from hubbub.protocol.messages import Model, ThreadRef
from hubbub.protocol.operations import Input

Choice = Literal["followed", "muted"]
Title = Annotated[str, Field(max_length=120, pattern=r"^[^\x00-\x1f\x7f]*$")]


class WhichThread(Input):
    thread: ThreadRef
    """The thread's id, as you are shown it or canonical."""


class SetThreadTitle(WhichThread):
    title: Title
    """What it is called, in one line; empty: as its first message says."""


class ListThreadInfo(Input):
    thread: ThreadRef | None = None
    """Only this thread, and the reply threads in it."""
    state: Literal["all", "open", "resolved"] = "all"
    """Only those that are resolved, or are not."""
    followed: bool = False
    """Only those that you follow."""
    before: Position | None = None
    """Only those whose last message is before this position (seq) of the log: `last_seq` of the
    last one that you have."""
    limit: Annotated[int, Field(ge=1, le=50)] = 20
    """How many at most."""


class ThreadState(Model):
    """What is known of a thread, and is the same for all its readers."""

    thread_id: str
    """Canonical."""
    title: str | None = None
    """What somebody has called it; left out: nobody has."""
    titled_by: str | None = None
    """Who has called it so."""
    resolved_by: str | None = None
    """Who has resolved it; left out: it is open."""
    resolved_at: At | None = None
    """When it was resolved."""


class ThreadChoice(Model):
    """What holds for you in a thread."""

    thread_id: str
    """Canonical."""
    followed: bool
    """Whether you follow it."""
    muted: bool
    """Whether you have muted it."""
    chosen_in: str | None = None
    """Of which thread you have said so: this one, or one that it stands in."""


class ThreadInfo(ThreadState, ThreadChoice):
    automatic: str | None = None
    """How the message begins under which the thread stands: its title where it has no other."""
    replies: int
    """Messages in it, besides edits and deletions."""
    last_seq: int
    """Position (seq) of the last thing that happened in it."""
    last_by: str | None = None
    """Who that was."""
    last_at: AwareDatetime | None = None
    """When that was."""


class ThreadInfos(Model):
    threads: tuple[ThreadInfo, ...]
    """Reply threads, and others that you follow or have muted; most recently active first."""
    more: bool
    """Whether there are others, less recently active."""
