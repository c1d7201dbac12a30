"""What a command or a chat shows, before anybody has decided how it looks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import JsonValue

from hubbub.people.figures import moment, size_words
from hubbub.people.text import aligned, clip, one_line
from hubbub.protocol.messages import Message

if TYPE_CHECKING:
    from rich.tree import Tree

    from hubbub.protocol.operations import SendResult

__all__ = [
    "CommandResult",
    "DayHeading",
    "Line",
    "NoteLine",
    "OtherThreadLine",
    "SaidLine",
    "ThreadHeading",
    "Tone",
    "by_shape",
    "done",
    "listing",
    "notes",
    "paged",
    "table",
    "text_notes",
]

Thread = Callable[[str], str]
"""A thread's canonical id as the reader is shown it."""
WIDEST = 80
"""Columns of one cell."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
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
class OtherThreadLine:
    """A message of another thread, in one line."""

    message: Message
    thread: str
    """As the reader is shown it."""
    mentions_me: bool = False
    mine: bool = False


@dataclass(frozen=True)
class ThreadHeading:
    """From here on this thread is shown."""

    thread: str


@dataclass(frozen=True)
class DayHeading:
    """What follows is of this day."""

    day: date


@dataclass(frozen=True)
class NoteLine:
    """Something that the program itself says."""

    text: str
    tone: Tone = "info"
    cut: bool = False
    """One row of a list: cut at the edge of the terminal instead of continued below."""


Line = SaidLine | OtherThreadLine | ThreadHeading | DayHeading | NoteLine


@dataclass(frozen=True)
class CommandResult:
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


def by_shape(value: JsonValue, thread: Thread = str) -> list[NoteLine]:
    """An answer whose operation says nothing of how it is shown: a list of things as a table,
    everything else name by name."""
    if not isinstance(value, dict):
        return [NoteLine(_cell("", value, thread), "plain")]
    if value == {"done": True}:
        return done("done")
    found: list[NoteLine] = []
    cells = {name: _cell(name, each, thread) for name, each in value.items() if not _things(each)}
    rows = [(name.replace("_", " "), cell) for name, cell in cells.items() if cell]
    if rows != [("more", "no")] and rows:
        found += table((), rows)
    for name, each in value.items():
        if things := _things(each):
            names = dict.fromkeys(name for thing in things for name in thing)
            found += [NoteLine(f"{name}:")] if rows and len(value) > 2 else []
            found += _columns(things, {name.replace("_", " "): name for name in names}, thread)
    return found or [NoteLine("nothing")]


def listing(value: JsonValue, columns: Iterable[str], thread: Thread, page: str) -> list[NoteLine]:
    """The things of an answer, a row each. `columns` are names of their fields (`card.skills`: of a
    field of a field), with another heading before a `=`; `page` is the option that asks for more
    than this, if there is one."""
    assert isinstance(value, dict), "an answer is an object"
    name, things = next((name, _things(each)) for name, each in value.items() if name != "more")
    if not things:
        return [NoteLine(f"no {name}")]
    fields = {}
    for column in columns:
        heading, same, field = column.partition("=")
        fields[heading if same else _heading(column)] = field or column
    found = _columns(things, fields, thread)
    if not value.get("more"):
        return found
    last = things[-1][next(iter(fields.values()))]
    return [*found, NoteLine(f"there are others: {f'--{page} {last}' if page else 'see --limit'}")]


def _heading(field: str) -> str:
    return field.rpartition(".")[2].removesuffix("_id").removesuffix("_at").replace("_", " ")


def _things(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    """The objects of a list of objects; empty for everything else."""
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return [each for each in value if isinstance(each, dict)]
    return []


def _columns(
    things: Sequence[Mapping[str, JsonValue]], fields: Mapping[str, str], thread: Thread
) -> list[NoteLine]:
    """A table of these fields by their headings, without columns in which nothing stands."""
    columns = {
        heading: [_cell(field, _value(each, field), thread) for each in things]
        for heading, field in fields.items()
    }
    columns = {heading.upper(): cells for heading, cells in columns.items() if any(cells)}
    return table(list(columns), zip(*columns.values(), strict=True))


def _value(thing: Mapping[str, JsonValue], field: str) -> JsonValue:
    name, _, rest = field.partition(".")
    value = thing.get(name)
    return _value(value, rest) if rest and isinstance(value, dict) else value


def _cell(field: str, value: JsonValue, thread: Thread) -> str:
    match value:
        case None | [] | {}:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() if field == "size":
            return size_words(value)
        case str() if _MOMENT.match(value):
            return moment(datetime.fromisoformat(value))
        case str() if field in ("thread", "thread_id"):
            return thread(value)
        case str() | int() | float():
            return clip(one_line(str(value)), WIDEST)
        case list() if not any(isinstance(each, dict | list) for each in value):
            return ", ".join(_cell(field, each, thread) for each in value)
    return one_line(json.dumps(value, ensure_ascii=False))
