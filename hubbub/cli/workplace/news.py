"""What signals of mods tell a person, in one quiet line each, or in none. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.cli.chat.text import one_line
from hubbub.cli.workplace.seen import Seen
from hubbub.protocol.frames import Signal

__all__ = ["News", "news"]

_NAMES = {
    "tasks": ("task", "title"),
    "polls": ("poll", "question"),
    "documents": ("id", "title"),
    "files": ("id", "name"),
}
"""Where a signal of a mod has an id, and what the thing is called."""


@dataclass(frozen=True)
class News:
    """Something that has happened in a thread."""

    text: str
    thread_id: str
    anywhere: bool = False
    """Whether it calls for this person also while another thread is open."""


def news(signal: Signal, me: str, seen: Seen) -> News | None:
    """What is to be told of a signal. Most tell programs what to show anew, and a person nothing:
    votes, steps of tasks, versions of documents. A poll comes as a message."""
    mod = signal.type.removeprefix("mod.")
    if mod == signal.type or signal.sender != "hub" or signal.thread_id is None:
        return None
    match signal.data:
        case {"kind": str(kind), "data": dict(data)}:
            _remember(mod, data, seen)
            found = _told(mod, kind, data, me)
            return None if found is None else News(found[0], signal.thread_id, found[1])
    return None


def _remember(mod: str, data: dict[str, JsonValue], seen: Seen) -> None:
    id, name = (data.get(each) for each in _NAMES.get(mod, ("", "")))
    if isinstance(id, str) and isinstance(name, str) and id[1:].isdecimal():
        seen.note([(id, name)])


def _told(mod: str, kind: str, data: dict[str, JsonValue], me: str) -> tuple[str, bool] | None:
    """The line, and whether it calls for this person."""

    def word(name: str) -> str:
        value = data.get(name)
        return one_line(value) if isinstance(value, str) else ""

    by = word("by")
    match mod, kind:
        case ("tasks", "created" | "assigned") if by != me and word("owner") == me:
            return f"{by} gives you {word('task')}: {word('title')}", True
        case ("threads", "titled") if word("title") and word("titled_by") != me:
            return f"{word('titled_by')} calls this thread: {word('title')}", False
        case ("threads", "resolved") if word("resolved_by") != me:
            return f"{word('resolved_by')} has resolved this thread", False
    return None
