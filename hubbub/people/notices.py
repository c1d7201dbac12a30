"""What signals of mods tell a person, in one quiet line each, or in none; and the things of mods
that a client has come across, for completion. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.people.text import one_line
from hubbub.protocol.frames import Signal

__all__ = ["MOST", "ModNotice", "Seen", "notice"]

MOST = 200
"""Things of a kind that are remembered."""

_NAMES = {
    "tasks": ("task", "title"),
    "polls": ("poll", "question"),
    "documents": ("id", "title"),
    "files": ("id", "name"),
}
"""Where a signal of a mod has an id, and what the thing is called."""


class Seen:
    """Ids and what they are called, by the letter that ids of the kind begin with."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}
        self.options: dict[str, tuple[str, ...]] = {}
        """What can be voted for, by poll."""

    def note(self, things: Iterable[tuple[str, str]]) -> None:
        """These are there: `t3`, and what it is called."""
        for id, name in things:
            known = self._known.setdefault(id[:1], {})
            known[id] = name
            if len(known) > MOST:
                del known[next(iter(known))]

    def offer(self, poll: str, options: tuple[str, ...]) -> None:
        """What can be voted for in a poll."""
        self.options[poll] = options
        if len(self.options) > MOST:
            del self.options[next(iter(self.options))]

    def of(self, kind: str) -> list[tuple[str, str]]:
        """Those of a kind (t, p, f, d, b), the latest first."""
        known = self._known.get(kind, {})
        return sorted(known.items(), key=lambda item: -int(item[0][1:]))


@dataclass(frozen=True)
class ModNotice:
    """Something that has happened in a thread."""

    text: str
    thread_id: str
    anywhere: bool = False
    """Whether it calls for this person also while another thread is open."""


def notice(signal: Signal, me: str, seen: Seen) -> ModNotice | None:
    """What is to be told of a signal. Most tell programs what to show anew, and a person nothing:
    votes, steps of tasks, versions of documents. A poll comes as a message."""
    mod = signal.type.removeprefix("mod.")
    if mod == signal.type or signal.sender != "hub" or signal.thread_id is None:
        return None
    match signal.data:
        case {"kind": str(kind), "data": dict(data)}:
            _remember(mod, data, seen)
            found = _told(mod, kind, data, me)
            return None if found is None else ModNotice(found[0], signal.thread_id, found[1])
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
