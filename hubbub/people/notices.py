"""Notices for signals of mods, one quiet line each at most; and the ids of mods' objects that a
client has seen, for completion and for reactions below messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from hubbub.people.text import one_line
from hubbub.protocol.frames import Signal

__all__ = ["MOST", "MOST_REACTIONS", "KnownIds", "notice"]

MOST = 200
"""Ids of a kind that are cached."""
MOST_REACTIONS = 2000
"""Messages whose reactions are cached."""
T = TypeVar("T")

_NAMES = {
    "tasks": ("task", "title"),
    "polls": ("poll", "question"),
    "documents": ("id", "title"),
    "files": ("id", "name"),
}
"""The fields of a mod's signal that hold the id and the name of an object."""


class KnownIds:
    """A cache of ids with their names, by kind (the first letter); of options of polls; and of
    reactions to messages."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}
        self._reactions: dict[str, str] = {}
        self.options: dict[str, tuple[str, ...]] = {}
        """The options of each poll."""

    def note(self, things: Iterable[tuple[str, str]]) -> None:
        """Cache ids such as `t3` with their names."""
        for id, name in things:
            _remember(self._known.setdefault(id[:1], {}), id, name, MOST)

    def offer(self, poll: str, options: tuple[str, ...]) -> None:
        """Cache the options of a poll."""
        _remember(self.options, poll, options, MOST)

    def of(self, kind: str) -> list[tuple[str, str]]:
        """The ids and names of a kind (t, p, f, d, b), newest first."""
        ids = self._known.get(kind, {})
        return sorted(ids.items(), key=lambda item: -int(item[0][1:]))

    def react(self, message_id: str, reactions: Iterable[tuple[str, int]]) -> str:
        """Cache a message's reactions; returns them as text: `👍 2  🎉 1`."""
        text = "  ".join(f"{one_line(emoji)} {count}" for emoji, count in reactions)
        self._reactions.pop(message_id, None)
        if text:
            _remember(self._reactions, message_id, text, MOST_REACTIONS)
        return text

    def reactions(self, message_id: str) -> str:
        """A message's reactions as text: `👍 2`, or nothing."""
        return self._reactions.get(message_id, "")


def _remember(cache: dict[str, T], key: str, value: T, most: int) -> None:
    cache[key] = value
    if len(cache) > most:
        del cache[next(iter(cache))]


@dataclass(frozen=True)
class ModNotice:
    """A line about an event in a thread."""

    text: str
    thread_id: str
    anywhere: bool = False
    """Whether to show it while another thread is open."""
    message_id: str = ""
    """Show it only if this message is visible; empty: always."""


def notice(signal: Signal, me: str, ids: KnownIds) -> ModNotice | None:
    """The notice for a signal, if any. Most signals only tell programs to refresh: votes, task
    states, versions of documents. A poll arrives as a message."""
    mod = signal.type.removeprefix("mod.")
    thread = signal.thread_id
    if mod == signal.type or signal.sender != "hub" or thread is None:
        return None
    match signal.data:
        case {"kind": str(kind), "data": dict(data)}:
            if mod == "reactions":
                return _reaction(thread, kind, data, me, ids)
            id, name = (data.get(each) for each in _NAMES.get(mod, ("", "")))
            if isinstance(id, str) and isinstance(name, str) and id[1:].isdecimal():
                ids.note([(id, name)])
            return _mod_notice(thread, mod, kind, data, me)
    return None


def _reaction(
    thread: str, kind: str, data: dict[str, JsonValue], me: str, ids: KnownIds
) -> ModNotice | None:
    match data:
        case {
            "message_id": str(id),
            "by": str(by),
            "emoji": str(emoji),
            "reactions": list(reactions),
        }:
            counts = [(r.get("emoji"), r.get("count")) for r in reactions if isinstance(r, dict)]
            words = ids.react(id, [(str(name), n) for name, n in counts if isinstance(n, int)])
            verb = "reacted with" if kind == "added" else "removed"
            now = f" ({words})" if words else ""
            line = f"{id} {one_line(by)} {verb} {one_line(emoji)}{now}"
            return None if by == me else ModNotice(line, thread, message_id=id)
    return None


def _mod_notice(
    thread: str, mod: str, kind: str, data: dict[str, JsonValue], me: str
) -> ModNotice | None:
    def word(name: str) -> str:
        value = data.get(name)
        return one_line(value) if isinstance(value, str) else ""

    by = word("by")
    match mod, kind:
        case ("tasks", "created" | "assigned") if by != me and word("owner") == me:
            text = f"{by} assigned you {word('task')}: {word('title')}"
            return ModNotice(text, thread, anywhere=True)
        case ("threads", "titled") if word("title") and word("titled_by") != me:
            return ModNotice(f"{word('titled_by')} titled this thread: {word('title')}", thread)
        case ("threads", "resolved") if word("resolved_by") != me:
            return ModNotice(f"{word('resolved_by')} resolved this thread", thread)
    return None
