"""The statements that write the tables of the mod `tasks`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hubbub.mods.rows import Statement
from hubbub.mods.tasks.rows import BoardRow, TaskRow

__all__ = ["board_made", "board_there", "changed", "created", "told_overdue"]

_COLUMNS = 16


def board_made(board: BoardRow) -> Statement:
    """A new board; refused if the thread has one of that name."""
    return Statement("INSERT INTO tasks_board VALUES (?, ?, ?, ?, ?)", board)


def board_there(board: BoardRow) -> Statement:
    """A thread's own board, if it is not there yet."""
    return Statement("INSERT OR IGNORE INTO tasks_board VALUES (?, ?, ?, ?, ?)", board)


def created(row: TaskRow, needs: Collection[int] = (), note: str = "") -> Sequence[Statement]:
    places = ", ".join("?" * _COLUMNS)
    return [
        Statement(f"INSERT INTO tasks_task VALUES ({places}, NULL)", row),
        _change(row, row.created_by, "created", note),
        *_needs(row, needs),
    ]


def changed(
    row: TaskRow, by: str, what: str, note: str, needs: Collection[int] | None = None
) -> Sequence[Statement]:
    """The task's next version, if the one before is still the latest. `needs`: other dependencies;
    None: those that it has."""
    sql = (
        "UPDATE tasks_task SET title = ?, description = ?, state = ?, owner = ?, priority = ?, "
        "labels = ?, due = ?, result = ?, changed_at = ?, version = ? WHERE id = ? AND version = ?"
    )
    values = (
        row.title, row.description, row.state, row.owner, row.priority, row.labels, row.due,
        row.result, row.changed_at, row.version, row.id, row.version - 1,
    )  # fmt: skip
    made = [Statement(sql, values, rows=1), _change(row, by, what, note)]
    if needs is not None:
        made.append(Statement("DELETE FROM tasks_dependency WHERE task = ?", (row.id,)))
        made += _needs(row, needs)
    return made


def _needs(row: TaskRow, needs: Collection[int]) -> list[Statement]:
    sql = "INSERT INTO tasks_dependency VALUES (?, ?)"
    return [Statement(sql, (row.id, needed)) for needed in sorted(needs)]


def _change(row: TaskRow, by: str, what: str, note: str) -> Statement:
    values = (row.id, row.version, row.changed_at, by, what, note)
    return Statement("INSERT INTO tasks_change VALUES (?, ?, ?, ?, ?, ?)", values)


def told_overdue(task: int, due: float) -> Statement:
    """The thread was told that the task was due then."""
    return Statement("UPDATE tasks_task SET told = ? WHERE id = ?", (due, task))
