"""Boards with tasks."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.mods.tasks.schemas import Boards, BoardText, Task, TaskDetails
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.figures import moment
from hubbub.people.shown import CommandResult, NoteLine, done, table, text_notes
from hubbub.people.text import one_line

__all__ = ["COMMANDS"]


def _line(task: Task) -> str:
    """`t3 claimed by bot: Write (high, waits for t1)`."""
    told: list[str] = [task.priority] if task.priority != "normal" else []
    told += [f"due {moment(task.due)}"] if task.due else []
    told += [f"waits for {', '.join(task.waits_for)}"] if task.waits_for else []
    told += [f"request {task.request}"] if task.request else []
    told += task.labels
    by = f" by {task.owner}" if task.owner else ""
    more = f" ({', '.join(told)})" if told else ""
    return one_line(f"{task.id} {task.state}{by}: {task.title}{more}")


def changed(task: Task, person: PersonClient) -> list[NoteLine]:
    """A task after something was done with it."""
    return done(_line(task))


def details(found: TaskDetails, person: PersonClient) -> list[NoteLine]:
    """A task, what it is about, its result, and who has done what with it."""
    notes = [NoteLine(_line(found.task), "plain")]
    for title, text in (("description", found.description), ("result", found.result)):
        if text:
            notes += [NoteLine(f"{title}:"), *text_notes(text)]
    if found.history:
        rows = ((moment(each.at), each.by, each.what, each.note) for each in found.history)
        notes += table(("WHEN", "WHO", "WHAT", ""), rows)
    return notes


async def board(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """A board; where none is named, the only one of the thread or of all."""
    name = given.get("board") or await _only_board(person, given.get("thread"))
    value = await person.call("board_as_markdown", board=name)
    found = BoardText.model_validate(value)
    cut = [NoteLine("there are more tasks")] if found.cut else []
    return CommandResult(value, [*text_notes(found.text), *cut])


async def _only_board(person: PersonClient, thread: JsonValue) -> str:
    found = (await person.ask(Boards, "list_boards", thread=thread)).boards
    if len(found) == 1:
        return found[0].id
    person.state.seen.note((each.id, each.name) for each in found)
    names = ", ".join(
        f"{each.id} ({one_line(each.name) or person.shown(each.thread_id)})" for each in found
    )
    way = f"{person.typed('tasks add')} begins one"
    raise UserError(f"name one of the boards: {names}" if found else f"there is no board; {way}")


COMMANDS = (
    Command("tasks list", "list_tasks", columns=(
        "task=id", "state", "owner", "due", "thread_id", "title")),
    Command("tasks show", "read_task", details),
    Command("tasks add", "create_task", changed, here=True),
    Command("tasks claim", "claim_task", changed),
    Command("tasks finish", "finish_task", changed, order=("task", "result?")),
    Command("tasks release", "release_task", changed),
    Command("tasks assign", "assign_task", changed),
    Command("tasks update", "update_task", changed),
    Command("tasks cancel", "cancel_task", changed),
    Command("tasks reopen", "reopen_task", changed),
    Command("tasks boards", "list_boards"),
    Command("tasks board", "board_as_markdown", do=board, here=True, order=("board?",),
            about="Print a board as Markdown; without a name, the only one."),
)  # fmt: skip
