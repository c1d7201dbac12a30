"""A board as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hubbub.mods.tasks.schemas import Board, State, Task

__all__ = ["PARTS", "as_markdown"]

PARTS: Mapping[State, tuple[str, int]] = {
    "claimed": ("In work", 100),
    "open": ("Open", 100),
    "blocked": ("Blocked", 100),
    "done": ("Done", 20),
    "cancelled": ("Cancelled", 20),
}
"""By state: the heading, and how many are shown, the latest of them."""
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")
_BOX = {"done": "x", "cancelled": "-"}


def as_markdown(board: Board, parts: Mapping[State, Sequence[Task]], more: Iterable[State]) -> str:
    """The tasks by state; `more` are the states of which not all are there."""
    cut = set(more)
    lines = [f"# {_plain(board.name or 'Tasks')} ({board.id})"]
    for state, (heading, _) in PARTS.items():
        tasks = parts[state]
        if tasks:
            lines += ["", f"## {heading}", "", *map(_line, tasks)]
            lines += ["", "and earlier ones"] if state in cut else []
    return "\n".join([*lines, *([] if any(parts.values()) else ["", "No tasks."])]) + "\n"


def _line(task: Task) -> str:
    more = f" ({', '.join(notes)})" if (notes := list(_notes(task))) else ""
    return f"- [{_BOX.get(task.state, ' ')}] {task.id} {_plain(task.title)}{more}"


def _notes(task: Task) -> Iterator[str]:
    if task.owner is not None:
        yield _plain(task.owner)
    if task.priority != "normal":
        yield task.priority
    if task.due is not None:
        yield f"{'overdue since' if task.overdue else 'due'} {task.due:%Y-%m-%d %H:%M} UTC"
    if task.waits_for:
        yield f"waits for {', '.join(task.waits_for)}"
    if task.request is not None:
        yield f"request {task.request}"
    yield from map(_plain, task.labels)


def _plain(text: str) -> str:
    """The text, whatever marks of Markdown it has."""
    return _MARKS.sub(r"\\\1", text)
