"""What is read from the tables of the mod `tasks`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hubbub.mods.host import Host
from hubbub.mods.rows import marks, parts
from hubbub.mods.tasks.rows import BoardRow, Found, TaskRow
from hubbub.mods.tasks.states import State
from hubbub.mods.tasks.words import Board, TaskChange
from hubbub.mods.times import time_of

__all__ = ["Filter", "Shelf"]

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


class Shelf:
    """All boards and tasks of a network, whoever may read them."""

    def __init__(self, host: Host):
        self._host = host

    # Boards -----------------------------------------------------------------------------------

    async def last(self) -> tuple[int, int]:
        """The highest numbers of boards and of tasks."""
        ((board,),) = await self._host.rows("SELECT coalesce(max(id), 0) FROM tasks_board")
        ((task,),) = await self._host.rows("SELECT coalesce(max(id), 0) FROM tasks_task")
        return board, task

    async def own_boards(self) -> dict[str, BoardRow]:
        """The boards without a name, by thread."""
        rows = await self._host.rows(f"SELECT {_BOARD} FROM tasks_board WHERE name = ''")
        return {row.thread: row for row in (BoardRow(*each) for each in rows)}

    async def board(self, id: int) -> BoardRow | None:
        rows = await self._host.rows(f"SELECT {_BOARD} FROM tasks_board WHERE id = ?", id)
        return BoardRow(*rows[0]) if rows else None

    async def boards(self, threads: Collection[str], before: int, limit: int) -> list[BoardRow]:
        """Boards of these threads with lower numbers than `before`, the latest first."""
        found = list[BoardRow]()
        for names in parts(sorted(threads)):
            sql = (
                f"SELECT {_BOARD} FROM tasks_board WHERE thread IN ({marks(names)}) AND id < ? "
                "ORDER BY id DESC LIMIT ?"
            )
            found += [BoardRow(*row) for row in await self._host.rows(sql, *names, before, limit)]
        return sorted(found, reverse=True)[:limit]

    async def counted(self, boards: Sequence[BoardRow]) -> list[Board]:
        """The boards with the numbers of their tasks."""
        counts: dict[int, tuple[int, int]] = {}
        for ids in parts([board.id for board in boards]):
            sql = (
                f"SELECT board, sum({_ACTIVE}), sum(NOT {_ACTIVE}) FROM tasks_task "
                f"WHERE board IN ({marks(ids)}) GROUP BY board"
            )
            rows = await self._host.rows(sql, *ids)
            counts |= {board: (active, over) for board, active, over in rows}
        return [board.told(*counts.get(board.id, (0, 0))) for board in boards]

    async def active(self, board: int) -> int:
        """How many tasks of the board are not over."""
        sql = f"SELECT count(*) FROM tasks_task WHERE board = ? AND {_ACTIVE}"
        ((count,),) = await self._host.rows(sql, board)
        return int(count)

    # Tasks ------------------------------------------------------------------------------------

    async def task(self, id: int) -> Found | None:
        rows = await self._host.rows(f"SELECT {_TASK} FROM tasks_task WHERE id = ?", id)
        return (await self._with_needs([TaskRow(*rows[0])]))[0] if rows else None

    async def of_request(self, request: str) -> Found | None:
        """The task that stands for a request."""
        rows = await self._host.rows(f"SELECT {_TASK} FROM tasks_task WHERE request = ?", request)
        return Found(TaskRow(*rows[0])) if rows else None

    async def rows_of(self, ids: Collection[int]) -> dict[int, TaskRow]:
        """Tasks by their numbers; those that there are not are left out."""
        found: dict[int, TaskRow] = {}
        for part in parts(sorted(ids)):
            sql = f"SELECT {_TASK} FROM tasks_task WHERE id IN ({marks(part)})"
            found |= {row[0]: TaskRow(*row) for row in await self._host.rows(sql, *part)}
        return found

    async def tasks(
        self, threads: Collection[str], which: Filter, before: int, limit: int
    ) -> list[Found]:
        """Tasks of these threads with lower numbers than `before`, the latest first."""
        conditions, values = which.sql()
        found = list[TaskRow]()
        for names in parts(sorted(threads)):
            sql = (
                f"SELECT {_TASK} FROM tasks_task WHERE thread IN ({marks(names)}) AND id < ?"
                f"{conditions} ORDER BY id DESC LIMIT ?"
            )
            rows = await self._host.rows(sql, *names, before, *values, limit)
            found += [TaskRow(*row) for row in rows]
        found.sort(key=lambda row: row.id, reverse=True)
        return await self._with_needs(found[:limit])

    async def _with_needs(self, rows: Sequence[TaskRow]) -> list[Found]:
        needs, waits = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for part in parts([row.id for row in rows]):
            sql = (
                "SELECT DISTINCT task, needs, state IN ('open', 'claimed') FROM tasks_dependency "
                f"JOIN tasks_task ON id = needs WHERE task IN ({marks(part)}) ORDER BY needs"
            )
            for task, needed, active in await self._host.rows(sql, *part):
                needs[task].append(needed)
                if active:
                    waits[task].append(needed)
        return [Found(row, needs[row.id], waits[row.id]) for row in rows]

    async def needed_by(self, tasks: Collection[int]) -> list[tuple[int, int]]:
        """What these tasks depend on: pairs of a task and one that it needs."""
        found = list[tuple[int, int]]()
        for part in parts(sorted(tasks)):
            sql = (
                "SELECT DISTINCT task, needs FROM tasks_dependency "
                f"WHERE task IN ({marks(part)}) ORDER BY task, needs"
            )
            found += [(task, needed) for task, needed in await self._host.rows(sql, *part)]
        return found

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
        return [TaskRow(*row) for row in await self._host.rows(sql, now, limit)]

    async def next_due(self, now: float) -> float | None:
        """The first time after now at which a task is due."""
        sql = f"SELECT min(due) FROM tasks_task WHERE due > ? AND {_ACTIVE} AND request IS NULL"
        ((due,),) = await self._host.rows(sql, now)
        return None if due is None else float(due)

    async def holders(self) -> list[str]:
        """Whoever holds a task that is no request."""
        sql = (
            "SELECT DISTINCT owner FROM tasks_task "
            "WHERE owner IS NOT NULL AND state = 'claimed' AND request IS NULL"
        )
        return [owner for (owner,) in await self._host.rows(sql)]

    async def held_by(self, owner: str, limit: int) -> list[TaskRow]:
        """Tasks that are no requests, and that this participant holds."""
        sql = (
            f"SELECT {_TASK} FROM tasks_task WHERE owner = ? AND state = 'claimed' "
            "AND request IS NULL ORDER BY id LIMIT ?"
        )
        return [TaskRow(*row) for row in await self._host.rows(sql, owner, limit)]
