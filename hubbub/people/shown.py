"""What a command or a chat shows, before anybody has decided how it looks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal

from pydantic import JsonValue

from hubbub.people.text import aligned, one_line
from hubbub.protocol.messages import Message

if TYPE_CHECKING:
    from rich.tree import Tree

    from hubbub.protocol.operations import SendResult

__all__ = [
    "Day",
    "Elsewhere",
    "Line",
    "NoteLine",
    "Opened",
    "SaidLine",
    "Shown",
    "Tone",
    "by_shape",
    "done",
    "notes",
    "paged",
    "table",
    "text_notes",
]

Tone = Literal["info", "good", "error", "plain", "removed"]
"""plain: what somebody wants to read. removed: what is not there any more."""


@dataclass(frozen=True)
class SaidLine:
    """A message of the current thread."""

    message: Message
    mine: bool = False
    mentions_me: bool = False
    me: str = ""
    reactions: str = ""
    """`👍 2`: what stands below it."""


@dataclass(frozen=True)
class Elsewhere:
    """A message of another thread, in one line."""

    message: Message
    thread: str
    """As the reader is shown it."""
    mentions_me: bool = False
    mine: bool = False


@dataclass(frozen=True)
class Opened:
    """From here on this thread is shown."""

    thread: str


@dataclass(frozen=True)
class Day:
    """What follows is of this day."""

    day: date


@dataclass(frozen=True)
class NoteLine:
    """Something that the program itself says."""

    text: str
    tone: Tone = "info"
    cut: bool = False
    """One row of a list: cut at the edge of the terminal instead of continued below."""


Line = SaidLine | Elsewhere | Opened | Day | NoteLine


@dataclass(frozen=True)
class Shown:
    """What came of a command: the answer for programs, and notes for people. Notes may carry text
    of others as it is: showing makes it safe."""

    value: JsonValue
    notes: Sequence[NoteLine] = ()
    tree: Tree | None = None
    """The notes again, in colour, where they are a tree."""
    spoken: SendResult | None = None
    """A message that this has sent."""


def notes(lines: Iterable[str], tone: Tone = "info") -> list[NoteLine]:
    """Lines of one tone."""
    return [NoteLine(line, tone) for line in lines]


def done(*lines: str) -> list[NoteLine]:
    """Something has been done: what holds now."""
    return notes(lines, "good")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[NoteLine]:
    """Columns below a heading; without `head` there is none."""
    lines = aligned(head, rows)
    heading = [NoteLine(line, cut=True) for line in lines[:1] if head]
    return [*heading, *(NoteLine(line, "plain", cut=True) for line in lines[len(heading) :])]


def paged(found: list[NoteLine], more: bool, way: str) -> list[NoteLine]:
    """A page of a list, and how to see the next one where there is one."""
    return [*found, NoteLine(way)] if more else found


def text_notes(text: str) -> list[NoteLine]:
    """A text as notes, one a line, indented: nothing in it can pass for a message."""
    return [NoteLine(f"  {line}", "plain") for line in text.rstrip("\n").split("\n")]


# By shape -----------------------------------------------------------------------------------------


def by_shape(value: JsonValue) -> list[NoteLine]:
    """An answer whose operation says nothing of how it is shown: a list of things as a table,
    everything else name by name."""
    if not isinstance(value, dict):
        return [NoteLine(_cell(value), "plain")]
    if value == {"done": True}:
        return done("done")
    found: list[NoteLine] = []
    rows = [(name, _cell(each)) for name, each in value.items() if not _things(each)]
    if rows != [("more", "no")] and rows:
        found += table((), rows)
    for name, each in value.items():
        if things := _things(each):
            found += [*([NoteLine(f"{name}:")] if rows and len(value) > 2 else []), *_table(things)]
    return found or [NoteLine("nothing")]


def _things(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    """The objects of a list of objects; empty for everything else."""
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return [each for each in value if isinstance(each, dict)]
    return []


def _table(things: Sequence[Mapping[str, JsonValue]]) -> list[NoteLine]:
    names = list(dict.fromkeys(name for each in things for name in each))
    head = [name.replace("_", " ").upper() for name in names]
    return table(head, ([_cell(each.get(name)) for name in names] for each in things))


def _cell(value: JsonValue) -> str:
    match value:
        case None | [] | {}:
            return ""
        case bool():
            return "yes" if value else "no"
        case str() | int() | float():
            return one_line(str(value))
        case list() if not any(isinstance(each, dict | list) for each in value):
            return ", ".join(map(_cell, value))
    return one_line(json.dumps(value, ensure_ascii=False))
