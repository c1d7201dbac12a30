"""The lines that a command or a chat shows, independent of how they are rendered."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import JsonValue

from hubbub.people.figures import moment, size_text
from hubbub.people.text import aligned, clip, one_line
from hubbub.protocol.messages import Message

if TYPE_CHECKING:
    from rich.tree import Tree

    from hubbub.protocol.operations import SendResult

__all__ = [
    "CommandResult",
    "DayHeading",
    "Line",
    "MessageLine",
    "NoteLine",
    "OtherThreadLine",
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
"""Formats a thread's canonical id for the reader."""
WIDEST = 80
"""Columns of one cell."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
Tone = Literal["info", "good", "error", "plain", "removed"]
"""plain: the content itself. removed: a deleted line."""


@dataclass(frozen=True)
class MessageLine:
    """A message of the current thread."""

    message: Message
    mine: bool = False
    mentions_me: bool = False
    me: str = ""
    reactions: str = ""
    """The reactions below it: `👍 2`."""


@dataclass(frozen=True)
class OtherThreadLine:
    """A message of another thread, in one line."""

    message: Message
    thread: str
    """The thread's name for the reader."""
    mentions_me: bool = False
    mine: bool = False


@dataclass(frozen=True)
class ThreadHeading:
    """Heads the messages of a thread."""

    thread: str


@dataclass(frozen=True)
class DayHeading:
    """Heads the messages of a day."""

    day: date


@dataclass(frozen=True)
class NoteLine:
    """A line by the program itself."""

    text: str
    tone: Tone = "info"
    cut: bool = False
    """Whether to cut it at the edge of the terminal, as rows of a list, instead of wrapping it."""


Line = MessageLine | OtherThreadLine | ThreadHeading | DayHeading | NoteLine


@dataclass(frozen=True)
class CommandResult:
    """The result of a command: the answer for programs, and notes for people. Notes can contain
    raw text by others: rendering makes it safe."""

    value: JsonValue
    notes: Sequence[NoteLine] = ()
    tree: Tree | None = None
    """The notes as a coloured tree, if they are one."""
    sent: SendResult | None = None
    """The message that the command sent."""


def notes(lines: Iterable[str], tone: Tone = "info") -> list[NoteLine]:
    """Lines of one tone."""
    return [NoteLine(line, tone) for line in lines]


def done(*lines: str) -> list[NoteLine]:
    """Lines about a change that succeeded."""
    return notes(lines, "good")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[NoteLine]:
    """Columns below a heading; an empty `head` gives no heading."""
    lines = aligned(head, rows)
    heading = [NoteLine(line, cut=True) for line in lines[:1] if head]
    return [*heading, *(NoteLine(line, "plain", cut=True) for line in lines[len(heading) :])]


def paged(lines: list[NoteLine], more: bool, way: str) -> list[NoteLine]:
    """A page of a list, and how to get the next one if there is more."""
    return [*lines, NoteLine(way)] if more else lines


def text_notes(text: str) -> list[NoteLine]:
    """A text as indented notes, one per line, so that it cannot be mistaken for a message."""
    return [NoteLine(f"  {line}", "plain") for line in text.rstrip("\n").split("\n")]


# By shape -----------------------------------------------------------------------------------------


def by_shape(value: JsonValue, thread: Thread = str) -> list[NoteLine]:
    """An answer without a view of its own: lists of objects as tables, everything else as name and
    value."""
    if not isinstance(value, dict):
        return [NoteLine(_cell("", value, thread), "plain")]
    if value == {"done": True}:
        return done("done")
    lines: list[NoteLine] = []
    cells = {name: _cell(name, each, thread) for name, each in value.items() if not _objects(each)}
    rows = [(name.replace("_", " "), cell) for name, cell in cells.items() if cell]
    if rows != [("more", "no")] and rows:
        lines += table((), rows)
    for name, each in value.items():
        if objects := _objects(each):
            names = dict.fromkeys(name for row in objects for name in row)
            lines += [NoteLine(f"{name}:")] if rows and len(value) > 2 else []
            lines += _columns(objects, {name.replace("_", " "): name for name in names}, thread)
    return lines or [NoteLine("nothing")]


def listing(value: JsonValue, columns: Iterable[str], thread: Thread, page: str) -> list[NoteLine]:
    """The objects of an answer, one row each. `columns` are fields (`card.skills` is a nested one),
    optionally as `heading=field`; `page` is the option for the next page, if there is one."""
    assert isinstance(value, dict), "an answer is an object"
    name, objects = next((name, _objects(each)) for name, each in value.items() if name != "more")
    if not objects:
        return [NoteLine(f"no {name}")]
    fields = {}
    for column in columns:
        heading, same, field = column.partition("=")
        fields[heading if same else _heading(column)] = field or column
    lines = _columns(objects, fields, thread)
    if not value.get("more"):
        return lines
    last = objects[-1][next(iter(fields.values()))]
    return [*lines, NoteLine(f"there are more: {f'--{page} {last}' if page else 'see --limit'}")]


def _heading(field: str) -> str:
    return field.rpartition(".")[2].removesuffix("_id").removesuffix("_at").replace("_", " ")


def _objects(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    """The objects of a list of objects; empty for other values."""
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return [each for each in value if isinstance(each, dict)]
    return []


def _columns(
    objects: Sequence[Mapping[str, JsonValue]], fields: Mapping[str, str], thread: Thread
) -> list[NoteLine]:
    """A table of these fields by heading, without empty columns."""
    columns = {
        heading: [_cell(field, _value(each, field), thread) for each in objects]
        for heading, field in fields.items()
    }
    columns = {heading.upper(): cells for heading, cells in columns.items() if any(cells)}
    return table(list(columns), zip(*columns.values(), strict=True))


def _value(row: Mapping[str, JsonValue], field: str) -> JsonValue:
    name, _, rest = field.partition(".")
    value = row.get(name)
    return _value(value, rest) if rest and isinstance(value, dict) else value


def _cell(field: str, value: JsonValue, thread: Thread) -> str:
    match value:
        case None | [] | {}:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() if field == "size":
            return size_text(value)
        case str() if _MOMENT.match(value):
            return moment(datetime.fromisoformat(value))
        case str() if field in ("thread", "thread_id"):
            return thread(value)
        case str() | int() | float():
            return clip(one_line(str(value)), WIDEST)
        case list() if not any(isinstance(each, dict | list) for each in value):
            return ", ".join(_cell(field, each, thread) for each in value)
    return one_line(json.dumps(value, ensure_ascii=False))
