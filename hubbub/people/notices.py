"""What signals of mods tell a person, in one quiet line each, or in none; and the things of mods
that a client has come across: for completion, and below messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from hubbub.people.text import one_line
from hubbub.protocol.frames import Signal

__all__ = ["MOST", "MOST_REACTIONS", "KnownIds", "notice"]

MOST = 200
"""Things of a kind that are remembered."""
MOST_REACTIONS = 2000
"""Messages whose reactions are remembered."""
T = TypeVar("T")

_NAMES = {
    "tasks": ("task", "title"),
    "polls": ("poll", "question"),
    "documents": ("id", "title"),
    "files": ("id", "name"),
}
"""Where a signal of a mod has an id, and what the thing is called."""


class KnownIds:
    """Ids and what they are called, by the letter that ids of the kind begin with; options of
    polls; reactions to messages."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}
        self._reactions: dict[str, str] = {}
        self.options: dict[str, tuple[str, ...]] = {}
        """What can be voted for, by poll."""

    def note(self, things: Iterable[tuple[str, str]]) -> None:
        """These are there: `t3`, and what it is called."""
        for id, name in things:
            _remember(self._known.setdefault(id[:1], {}), id, name, MOST)

    def offer(self, poll: str, options: tuple[str, ...]) -> None:
        """What can be voted for in a poll."""
        _remember(self.options, poll, options, MOST)

    def of(self, kind: str) -> list[tuple[str, str]]:
        """Those of a kind (t, p, f, d, b), the latest first."""
        known = self._known.get(kind, {})
        return sorted(known.items(), key=lambda item: -int(item[0][1:]))

    def react(self, message_id: str, reactions: Iterable[tuple[str, int]]) -> str:
        """What stands below a message now, each emoji with how often: `👍 2  🎉 1`."""
        words = "  ".join(f"{one_line(emoji)} {count}" for emoji, count in reactions)
        self._reactions.pop(message_id, None)
        if words:
            _remember(self._reactions, message_id, words, MOST_REACTIONS)
        return words

    def reactions(self, message_id: str) -> str:
        """What stands below a message: `👍 2`, or nothing."""
        return self._reactions.get(message_id, "")


def _remember(known: dict[str, T], key: str, value: T, most: int) -> None:
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]


@dataclass(frozen=True)
class ModNotice:
    """Something that has happened in a thread."""

    text: str
    thread_id: str
    anywhere: bool = False
    """Whether it calls for this person also while another thread is open."""
    message_id: str = ""
    """The message that has to be in sight for it to mean something; empty: none."""


def notice(signal: Signal, me: str, seen: KnownIds) -> ModNotice | None:
    """What a person sees of a signal. Most only say to programs what to show anew:
    votes, steps of tasks, versions of documents. A poll comes as a message."""
    mod = signal.type.removeprefix("mod.")
    thread = signal.thread_id
    if mod == signal.type or signal.sender != "hub" or thread is None:
        return None
    match signal.data:
        case {"kind": str(kind), "data": dict(data)}:
            if mod == "reactions":
                return _reaction(thread, kind, data, me, seen)
            id, name = (data.get(each) for each in _NAMES.get(mod, ("", "")))
            if isinstance(id, str) and isinstance(name, str) and id[1:].isdecimal():
                seen.note([(id, name)])
            return _told(thread, mod, kind, data, me)
    return None


def _reaction(
    thread: str, kind: str, data: dict[str, JsonValue], me: str, seen: KnownIds
) -> ModNotice | None:
    match data:
        case {
            "message_id": str(id),
            "by": str(by),
            "emoji": str(emoji),
            "reactions": list(found),
        }:
            counts = [(r.get("emoji"), r.get("count")) for r in found if isinstance(r, dict)]
            words = seen.react(id, [(str(name), n) for name, n in counts if isinstance(n, int)])
            did = "reacted" if kind == "added" else "took back"
            now = f" ({words})" if words else ""
            line = f"{id} {one_line(by)} {did} {one_line(emoji)}{now}"
            return None if by == me else ModNotice(line, thread, message_id=id)
    return None


def _told(
    thread: str, mod: str, kind: str, data: dict[str, JsonValue], me: str
) -> ModNotice | None:
    def word(name: str) -> str:
        value = data.get(name)
        return one_line(value) if isinstance(value, str) else ""

    by = word("by")
    match mod, kind:
        case ("tasks", "created" | "assigned") if by != me and word("owner") == me:
            text = f"{by} gives you {word('task')}: {word('title')}"
            return ModNotice(text, thread, anywhere=True)
        case ("threads", "titled") if word("title") and word("titled_by") != me:
            return ModNotice(f"{word('titled_by')} calls this thread: {word('title')}", thread)
        case ("threads", "resolved") if word("resolved_by") != me:
            return ModNotice(f"{word('resolved_by')} has resolved this thread", thread)
    return None
