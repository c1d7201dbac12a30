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
    """The thread's id, canonical or as shown to you."""


class SetThreadTitle(WhichThread):
    title: Title
    """The title, in one line. Empty resets it to the beginning of its first message."""


class ListThreadInfo(Input):
    thread: ThreadRef | None = None
    """Only this thread and its reply threads."""
    state: Literal["all", "open", "resolved"] = "all"
    """Only open threads, or only resolved ones."""
    followed: bool = False
    """Only threads that you follow."""
    before: Position | None = None
    """Only threads whose last message is before this log position: pass `last_seq` of the last
    thread that you have."""
    limit: Annotated[int, Field(ge=1, le=50)] = 20
    """Maximum number of results."""


class ThreadState(Model):
    """The state of a thread, which is the same for all its readers."""

    thread_id: str
    """Canonical."""
    title: str | None = None
    """Omitted if no title was set."""
    titled_by: str | None = None
    """The participant who set the title."""
    resolved_by: str | None = None
    """The participant who resolved it. Omitted while it is open."""
    resolved_at: At | None = None


class ThreadChoice(Model):
    """Your notification settings for a thread."""

    thread_id: str
    """Canonical."""
    followed: bool
    """Whether you follow it."""
    muted: bool
    """Whether you muted it."""
    chosen_in: str | None = None
    """The thread for which you chose this: this one, or one that contains it."""


class ThreadInfo(ThreadState, ThreadChoice):
    automatic: str | None = None
    """Beginning of the message that the thread replies to. It serves as title if none is set."""
    replies: int
    """Number of messages, without edits and deletions."""
    last_seq: int
    """Log position (seq) of the last activity."""
    last_by: str | None = None
    """The participant behind the last activity."""
    last_at: AwareDatetime | None = None
    """Time of the last activity."""


class ThreadInfos(Model):
    threads: tuple[ThreadInfo, ...]
    """Reply threads, and other threads that you follow or muted. Most recently active first."""
    more: bool
    """Whether there are more, less recently active threads."""
