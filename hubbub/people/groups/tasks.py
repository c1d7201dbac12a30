"""Tasks on boards."""

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
    details: list[str] = [task.priority] if task.priority != "normal" else []
    details += [f"due {moment(task.due)}"] if task.due else []
    details += [f"waits for {', '.join(task.waits_for)}"] if task.waits_for else []
    details += [f"request {task.request}"] if task.request else []
    details += task.labels
    by = f" by {task.owner}" if task.owner else ""
    more = f" ({', '.join(details)})" if details else ""
    return one_line(f"{task.id} {task.state}{by}: {task.title}{more}")


def changed(task: Task, person: PersonClient) -> list[NoteLine]:
    """A task after a change."""
    return done(_line(task))


def details(answer: TaskDetails, person: PersonClient) -> list[NoteLine]:
    """A task with its description, result and history."""
    notes = [NoteLine(_line(answer.task), "plain")]
    for title, text in (("description", answer.description), ("result", answer.result)):
        if text:
            notes += [NoteLine(f"{title}:"), *text_notes(text)]
    if answer.history:
        rows = ((moment(each.at), each.by, each.what, each.note) for each in answer.history)
        notes += table(("WHEN", "WHO", "WHAT", ""), rows)
    return notes


async def board(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """A board; by default the only one of the thread or of the network."""
    name = given.get("board") or await _only_board(person, given.get("thread"))
    value = await person.call("board_as_markdown", board=name)
    answer = BoardText.model_validate(value)
    cut = [NoteLine("there are more tasks")] if answer.cut else []
    return CommandResult(value, [*text_notes(answer.text), *cut])


async def _only_board(person: PersonClient, thread: JsonValue) -> str:
    answer = (await person.ask(Boards, "list_boards", thread=thread)).boards
    if len(answer) == 1:
        return answer[0].id
    person.state.known_ids.note((each.id, each.name) for each in answer)
    names = ", ".join(
        f"{each.id} ({one_line(each.name) or person.shown(each.thread_id)})" for each in answer
    )
    way = f"`{person.typed('tasks add')}` creates one"
    raise UserError(f"name one of the boards: {names}" if answer else f"there is no board; {way}")


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
            about="Print a board as Markdown. Default: the only one."),
)  # fmt: skip
