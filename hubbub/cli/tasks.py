"""`tasks list | show | board | add | claim | finish`: boards with tasks (mod `tasks`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.chat.text import visible
from hubbub.cli.desk import Desk, day_time
from hubbub.cli.joining import AddressOption, AsOption, TokenOption
from hubbub.cli.naming import label
from hubbub.cli.output import JsonFlag, emit_json, help_if_alone, table
from hubbub.errors import UserError

if TYPE_CHECKING:
    from hubbub.mods.tasks.schemas import Task

__all__ = ["register"]

group = typer.Typer(
    help="See and do what is on task boards (mod tasks).",
    invoke_without_command=True,
    callback=help_if_alone,
)
TaskArgument = Annotated[str, typer.Argument(help="The task, for example t3.")]
ThreadOption = Annotated[
    str | None, typer.Option("--thread", "-t", help="A thread: #general, @bob.")
]


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="tasks")


@group.command("list")
def list_(
    thread: ThreadOption = None,
    board: Annotated[str | None, typer.Option("--board", "-b", help="A board: b1.")] = None,
    state: Annotated[
        str | None, typer.Option("--state", help="open, claimed, blocked, done or cancelled.")
    ] = None,
    owner: Annotated[str | None, typer.Option("--owner", "-o", help="Who holds them.")] = None,
    ready: Annotated[bool, typer.Option("--ready", help="Only what can be claimed now.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 50,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List tasks, the latest first."""
    from hubbub.mods.tasks.schemas import Tasks

    desk = Desk.of(as_, address, token)
    which = {"board": board, "state": state, "owner": owner, "limit": limit}
    found = desk.ask(Tasks, "list_tasks", thread=thread, ready=ready or None, **which)
    if as_json:
        emit_json(found)
        return
    table(
        ("TASK", "STATE", "OWNER", "DUE", "THREAD", ""),
        (
            (
                task.id,
                "overdue" if task.overdue else task.state,
                task.owner or "",
                day_time(task.due),
                label(task.thread_id, desk.person),
                task.title,
            )
            for task in found.tasks
        ),
    )
    if found.more:
        typer.echo("there are earlier ones; see --limit")


@group.command("show")
def show(
    task: TaskArgument,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a task, its result, and who has done what with it."""
    from hubbub.mods.tasks.schemas import TaskDetails

    found = Desk.of(as_, address, token).ask(TaskDetails, "read_task", task=task)
    if as_json:
        emit_json(found)
        return
    typer.echo(_line(found.task))
    for name, text in (("", found.description), ("result: ", found.result)):
        if text:
            typer.echo(visible(f"\n{name}{text}"))
    typer.echo()
    table((), ((day_time(each.at), each.by, each.what, each.note) for each in found.history))


def _line(task: Task) -> str:
    """`t3 claimed by bot: Write (high, waits for t1)`."""
    notes: list[str] = [task.priority] if task.priority != "normal" else []
    notes += [f"due {day_time(task.due)}"] if task.due else []
    notes += [f"waits for {', '.join(task.waits_for)}"] if task.waits_for else []
    notes += [f"request {task.request}"] if task.request else []
    notes += task.labels
    by = f" by {task.owner}" if task.owner else ""
    more = f" ({', '.join(notes)})" if notes else ""
    return visible(f"{task.id} {task.state}{by}: {task.title}{more}")


@group.command("board")
def board(
    board: Annotated[
        str | None, typer.Argument(help="The board, for example b1; left out: the only one.")
    ] = None,
    thread: ThreadOption = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Print a board as Markdown."""
    from hubbub.mods.tasks.schemas import Boards, BoardText

    desk = Desk.of(as_, address, token)
    if board is None:
        there = desk.ask(Boards, "list_boards", thread=thread).boards
        if len(there) != 1:
            names = ", ".join(
                f"{each.id} ({each.name or label(each.thread_id, desk.person)})" for each in there
            )
            raise UserError(f"name one of the boards: {names}" if names else "there is no board")
        board = there[0].id
    found = desk.ask(BoardText, "board_as_markdown", board=board)
    if as_json:
        emit_json(found)
    else:
        typer.echo(visible(found.text), nl=False)


@group.command("add")
def add(
    title: Annotated[str, typer.Argument(help="What is to be done, in one line.")],
    thread: ThreadOption = None,
    board: Annotated[str | None, typer.Option("--board", "-b", help="A board: b1.")] = None,
    description: Annotated[
        str | None, typer.Option("--description", "-d", help="All that there is to know.")
    ] = None,
    owner: Annotated[str | None, typer.Option("--owner", "-o", help="Who is to do it.")] = None,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Create a task on the board of a thread."""
    args = {"title": title, "board": board, "description": description, "owner": owner}
    _do(Desk.of(as_, address, token), "create_task", as_json, thread=thread, **args)


@group.command("claim")
def claim(
    task: TaskArgument,
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take a task for yourself."""
    _do(Desk.of(as_, address, token), "claim_task", as_json, task=task)


@group.command("finish")
def finish(
    task: TaskArgument,
    result: Annotated[str, typer.Argument(help="What has come of it.")] = "",
    as_: AsOption = None,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Mark a task as done."""
    _do(Desk.of(as_, address, token), "finish_task", as_json, task=task, result=result)


def _do(
    desk: Desk, operation: str, as_json: bool, *, thread: str | None = None, **args: str | None
) -> None:
    """Change a task, and print what it is then."""
    from hubbub.mods.tasks.schemas import Task

    task = desk.ask(Task, operation, thread=thread, **args)
    if as_json:
        emit_json(task)
    else:
        typer.echo(_line(task))
