"""The tables of the mod `tasks`: what is read from them, and the statements that write them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hubbub.errors import OperationError
from hubbub.mods.fields import number_of, time_of
from hubbub.mods.repository import AMONG, Repository, listed
from hubbub.mods.rows import Statement
from hubbub.mods.tasks.schemas import Board, State, TaskChange
from hubbub.mods.tasks.states import BoardRow, TaskRecord, TaskRow
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message, RequestMark

__all__ = [
    "Filter",
    "TaskRepository",
    "asked",
    "board_made",
    "board_there",
    "changed",
    "checked_needs",
    "created",
    "ended",
    "overdue_announced",
]

_BOARD = "id, thread, name, created_by, created_at"
_TASK = (
    "id, board, thread, title, description, state, owner, priority, labels, due, result, "
    "created_by, created_at, changed_at, version, request"
)
_ACTIVE = "state IN ('open', 'claimed')"
_WAITS = (
    "EXISTS (SELECT 1 FROM tasks_dependency JOIN tasks_task AS needed ON needed.id = needs "
    "WHERE task = tasks_task.id AND needed.state IN ('open', 'claimed'))"
)
_IN_STATE: dict[State, str] = {
    "open": f"state = 'open' AND NOT {_WAITS}",
    "claimed": f"state = 'claimed' AND NOT {_WAITS}",
    "blocked": f"{_ACTIVE} AND {_WAITS}",
    "done": "state = 'done'",
    "cancelled": "state = 'cancelled'",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tasks are meant; None: any."""

    board: int | None = None
    state: State | None = None
    owner: str | None = None

    def sql(self) -> tuple[str, list[str | int]]:
        """Conditions, each with AND before it, and their values."""
        conditions, values = "", list[str | int]()
        if self.board is not None:
            conditions += " AND board = ?"
            values.append(self.board)
        if self.owner is not None:
            conditions += " AND owner = ?"
            values.append(self.owner)
        if self.state is not None:
            conditions += f" AND {_IN_STATE[self.state]}"
        return conditions, values


class TaskRepository(Repository):
    # Boards -----------------------------------------------------------------------------------

    async def last(self) -> tuple[int, int]:
        """The highest numbers of boards and of tasks."""
        board = await self.value("SELECT coalesce(max(id), 0) FROM tasks_board")
        return board, await self.value("SELECT coalesce(max(id), 0) FROM tasks_task")

    async def own_boards(self) -> dict[str, BoardRow]:
        """The boards without a name, by thread."""
        rows = await self.all(BoardRow, f"SELECT {_BOARD} FROM tasks_board WHERE name = ''")
        return {row.thread: row for row in rows}

    async def board(self, id: int) -> BoardRow | None:
        return await self.one(BoardRow, f"SELECT {_BOARD} FROM tasks_board WHERE id = ?", id)

    async def boards(self, threads: Collection[str], before: int, limit: int) -> list[BoardRow]:
        """Boards of these threads with lower numbers than `before`, the latest first."""
        sql = (
            f"SELECT {_BOARD} FROM tasks_board WHERE thread {AMONG} AND id < ? "
            "ORDER BY id DESC LIMIT ?"
        )
        return await self.all(BoardRow, sql, listed(threads), before, limit)

    async def counted(self, boards: Sequence[BoardRow]) -> list[Board]:
        """The boards with the numbers of their tasks."""
        sql = (
            f"SELECT board, sum({_ACTIVE}), sum(NOT {_ACTIVE}) FROM tasks_task "
            f"WHERE board {AMONG} GROUP BY board"
        )
        rows = await self._host.rows(sql, listed(board.id for board in boards))
        counts = {board: (active, over) for board, active, over in rows}
        return [board.to_schema(*counts.get(board.id, (0, 0))) for board in boards]

    async def active(self, board: int) -> int:
        """How many tasks of the board are not over."""
        sql = f"SELECT count(*) FROM tasks_task WHERE board = ? AND {_ACTIVE}"
        return int(await self.value(sql, board))

    # Tasks ------------------------------------------------------------------------------------

    async def task(self, id: int) -> TaskRecord | None:
        row = await self.one(TaskRow, f"SELECT {_TASK} FROM tasks_task WHERE id = ?", id)
        return (await self._with_needs([row]))[0] if row is not None else None

    async def of_request(self, request: str) -> TaskRecord | None:
        """The task that stands for a request."""
        sql = f"SELECT {_TASK} FROM tasks_task WHERE request = ?"
        row = await self.one(TaskRow, sql, request)
        return TaskRecord(row) if row is not None else None

    async def rows_of(self, ids: Collection[int]) -> dict[int, TaskRow]:
        """Tasks by their numbers; those that there are not are left out."""
        sql = f"SELECT {_TASK} FROM tasks_task WHERE id {AMONG}"
        return {row.id: row for row in await self.all(TaskRow, sql, listed(ids))}

    async def tasks(
        self, threads: Collection[str], which: Filter, before: int, limit: int
    ) -> list[TaskRecord]:
        """Tasks of these threads with lower numbers than `before`, the latest first."""
        conditions, values = which.sql()
        sql = (
            f"SELECT {_TASK} FROM tasks_task WHERE thread {AMONG} AND id < ?"
            f"{conditions} ORDER BY id DESC LIMIT ?"
        )
        found = await self.all(TaskRow, sql, listed(threads), before, *values, limit)
        return await self._with_needs(found)

    async def _with_needs(self, rows: Sequence[TaskRow]) -> list[TaskRecord]:
        needs, waits = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        sql = (
            "SELECT DISTINCT task, needs, state IN ('open', 'claimed') FROM tasks_dependency "
            f"JOIN tasks_task ON id = needs WHERE task {AMONG} ORDER BY needs"
        )
        for task, needed, active in await self._host.rows(sql, listed(row.id for row in rows)):
            needs[task].append(needed)
            if active:
                waits[task].append(needed)
        return [TaskRecord(row, needs[row.id], waits[row.id]) for row in rows]

    async def needed_by(self, tasks: Collection[int]) -> list[tuple[int, int]]:
        """What these tasks depend on: pairs of a task and one that it needs."""
        sql = (
            "SELECT DISTINCT task, needs FROM tasks_dependency "
            f"WHERE task {AMONG} ORDER BY task, needs"
        )
        return [(task, needed) for task, needed in await self._host.rows(sql, listed(tasks))]

    async def history(self, task: int, before: int, limit: int) -> list[TaskChange]:
        """What made the task's versions before this one, the latest first."""
        sql = (
            "SELECT version, at, by, what, note FROM tasks_change "
            "WHERE task = ? AND version < ? ORDER BY version DESC LIMIT ?"
        )
        return [
            TaskChange(version=version, at=time_of(at), by=by, what=what, note=note)
            for version, at, by, what, note in await self._host.rows(sql, task, before, limit)
        ]

    # What is due ------------------------------------------------------------------------------

    async def overdue(self, now: float, limit: int) -> list[TaskRow]:
        """Tasks whose time has come, and of which nobody was told."""
        sql = (
            f"SELECT {_TASK} FROM tasks_task WHERE due <= ? AND {_ACTIVE} AND request IS NULL "
            "AND told IS NOT due ORDER BY due LIMIT ?"
        )
        return await self.all(TaskRow, sql, now, limit)

    async def next_due(self, now: float) -> float | None:
        """The first time after now at which a task is due."""
        sql = f"SELECT min(due) FROM tasks_task WHERE due > ? AND {_ACTIVE} AND request IS NULL"
        due: float | None = await self.value(sql, now)
        return due

    async def holders(self) -> list[str]:
        """Whoever holds a task that is no request."""
        sql = (
            "SELECT DISTINCT owner FROM tasks_task "
            "WHERE owner IS NOT NULL AND state = 'claimed' AND request IS NULL"
        )
        return await self.all(str, sql)

    async def held_by(self, owner: str, limit: int) -> list[TaskRow]:
        """Tasks that are no requests, and that this participant holds."""
        sql = (
            f"SELECT {_TASK} FROM tasks_task WHERE owner = ? AND state = 'claimed' "
            "AND request IS NULL ORDER BY id LIMIT ?"
        )
        return await self.all(TaskRow, sql, owner, limit)


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


def overdue_announced(task: int, due: float) -> Statement:
    """The thread was told that the task was due then."""
    return Statement("UPDATE tasks_task SET told = ? WHERE id = ?", (due, task))


async def checked_needs(
    store: TaskRepository, thread: str, names: Sequence[str], task: int | None = None
) -> list[int]:
    """The numbers of the tasks that `task` (None: a new one) is to depend on.

    Raises `OperationError` for a task that is not in the thread, and for a circle, with the names
    of all in it.
    """
    needs = sorted({number_of(name) for name in names})
    rows = await store.rows_of(needs)
    for id in needs:
        if id not in rows or rows[id].thread != thread:
            text = f"depends_on: there is no task t{id} in the thread of this one; see list_tasks"
            raise OperationError(ErrorCode.NOT_FOUND, text)
    if task is not None:
        circle = await _way(store, needs, task)
        if circle:
            await _refuse(store, [task, *circle])
    return needs


async def _way(store: TaskRepository, starts: Sequence[int], goal: int) -> list[int]:
    """A shortest way along dependencies from a start to the goal; empty: there is none."""
    came: dict[int, int | None] = dict.fromkeys(starts)
    layer = list(starts)
    while layer and goal not in came:
        pairs = await store.needed_by(layer)
        layer = []
        for task, needed in pairs:
            if needed not in came:
                came[needed] = task
                layer.append(needed)
    if goal not in came:
        return []
    way = [goal]
    while (before := came[way[0]]) is not None:
        way.insert(0, before)
    return way


async def _refuse(store: TaskRepository, circle: Sequence[int]) -> None:
    rows = await store.rows_of(set(circle))
    names = " -> ".join(rows[id].name for id in circle)
    raise OperationError(
        ErrorCode.BAD_REQUEST,
        f"depends_on: none of these could ever be claimed, each would wait for the next: {names}",
        details={"cycle": [f"t{id}" for id in circle]},
    )


TITLE, BODY = 200, 10_000
"""Characters that a task has of what was said."""


def asked(message: Message, mark: RequestMark, board: BoardRow, id: int) -> Sequence[Statement]:
    """A task for the request that this message makes."""
    at = message.sent_at.timestamp()
    row = TaskRow(
        id=id,
        board=board.id,
        thread=message.thread_id,
        title=_title(message.text),
        description=message.text[:BODY],
        state="claimed",
        owner=message.recipients[0],
        priority="normal",
        labels="[]",
        due=mark.deadline.timestamp() if mark.deadline else None,
        result="",
        created_by=message.sender_id,
        created_at=at,
        changed_at=at,
        version=1,
        request=message.id,
    )
    return [board_there(board), *created(row)]


def _title(text: str) -> str:
    """The first line that says something."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    line = "".join(c for c in next(filter(None, lines), "") if c.isprintable()) or "request"
    return line if len(line) <= TITLE else f"{line[: TITLE - 3]}..."


def ended(message: Message, mark: RequestMark) -> Sequence[Statement]:
    """The end of the task for the request that this message ends."""
    done = mark.kind == "result"
    at, result = message.sent_at.timestamp(), message.text[:BODY]
    end = (
        "UPDATE tasks_task SET state = ?, result = ?, changed_at = ?, version = version + 1 "
        "WHERE request = ? AND state = 'claimed'"
    )
    told = (  # ignored where it has ended before: that version has its change
        "INSERT OR IGNORE INTO tasks_change SELECT id, version, ?, ?, ?, ? FROM tasks_task "
        "WHERE request = ?"
    )
    word, note = ("finished", "") if done else ("cancelled", mark.outcome)
    return [
        Statement(end, ("done" if done else "cancelled", result, at, mark.id)),
        Statement(told, (at, message.sender_id, word, note, mark.id)),
    ]
