"""The tables of the mod `tasks`, the statements that write them, and what time does to tasks: some
become overdue, and those of absent agents are released."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.mods.fields import number_of, seconds_of
from hubbub.mods.host import Alarm, Host
from hubbub.mods.operation import Statement, Value, bad_request, not_found
from hubbub.mods.repository import (
    AMONG,
    KeyedQueues,
    Repository,
    columns,
    from_row,
    insert,
    listed,
    update,
)
from hubbub.mods.tasks.schemas import Board, State, Task, TaskChange, changed_task
from hubbub.protocol.messages import Message, RequestMark
from hubbub.wording import shortened

__all__ = [
    "Filter",
    "TaskDeadlines",
    "TaskRepository",
    "board_made",
    "changed",
    "checked_needs",
    "created",
    "ended",
]


_ACTIVE = "state IN ('open', 'claimed')"
_NEEDED = (
    "FROM tasks_dependency JOIN tasks_task AS needed ON needed.id = needs "
    "WHERE task = tasks_task.id"
)
_WAITS = f"EXISTS (SELECT 1 {_NEEDED} AND needed.{_ACTIVE})"
_LISTED = "(SELECT json_group_array('t' || needs) FROM (SELECT needs {} ORDER BY needs))"
_TASKS = "SELECT {} FROM tasks_task WHERE ".format(
    columns(
        Task,
        id="'t' || id",
        board="'b' || board",
        thread_id="thread",
        state=f"iif({_ACTIVE} AND {_WAITS}, 'blocked', state)",
        overdue=f"coalesce(due <= ?, 0) AND {_ACTIVE}",
        depends_on=_LISTED.format(_NEEDED),
        waits_for=_LISTED.format(f"{_NEEDED} AND needed.{_ACTIVE}"),
    )
)
_BOARDS = "SELECT {} FROM tasks_board WHERE ".format(
    columns(
        Board,
        id="'b' || id",
        thread_id="thread",
        active=f"(SELECT count(*) FROM tasks_task WHERE board = tasks_board.id AND {_ACTIVE})",
        over=f"(SELECT count(*) FROM tasks_task WHERE board = tasks_board.id AND NOT {_ACTIVE})",
    )
)
_IN_STATE: dict[State, str] = {
    "open": f"state = 'open' AND NOT {_WAITS}",
    "claimed": f"state = 'claimed' AND NOT {_WAITS}",
    "blocked": f"{_ACTIVE} AND {_WAITS}",
    "done": "state = 'done'",
    "cancelled": "state = 'cancelled'",
}
_task, _board, _change_of = from_row(Task), from_row(Board), from_row(TaskChange)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tasks are meant; None: any."""

    board: str | None = None
    state: State | None = None
    owner: str | None = None

    def sql(self) -> tuple[str, list[str | int]]:
        """Conditions, each with AND before it, and their values."""
        conditions, values = "", list[str | int]()
        if self.board is not None:
            conditions += " AND board = ?"
            values.append(number_of(self.board))
        if self.owner is not None:
            conditions += " AND owner = ?"
            values.append(self.owner)
        if self.state is not None:
            conditions += f" AND {_IN_STATE[self.state]}"
        return conditions, values


class TaskRepository(Repository):
    # Boards -----------------------------------------------------------------------------------

    async def own_boards(self) -> dict[str, Board]:
        """The boards without a name, by thread."""
        return {each.thread_id: each for each in await self.all(_board, f"{_BOARDS} name = ''")}

    async def board(self, id: str) -> Board | None:
        return await self.one(_board, f"{_BOARDS} id = ?", number_of(id))

    async def boards(
        self, threads: Collection[str], before: int, limit: int
    ) -> tuple[tuple[Board, ...], bool]:
        """Boards of these threads with lower numbers than `before`, the latest first."""
        sql = f"{_BOARDS} thread {AMONG} AND id < ? ORDER BY id DESC LIMIT ?"
        return await self.page(_board, sql, listed(threads), before, limit=limit)

    # Tasks ------------------------------------------------------------------------------------

    async def _tasks(self, where: str, *values: Value) -> list[Task]:
        return await self.all(_task, f"{_TASKS} {where}", self._host.now(), *values)

    async def task(self, id: str) -> Task | None:
        return next(iter(await self._tasks("id = ?", number_of(id))), None)

    async def texts(self, id: str) -> tuple[str, str]:
        """Description and result of a task that is there."""
        sql = "SELECT description, result FROM tasks_task WHERE id = ?"
        ((description, result),) = await self._host.rows(sql, number_of(id))
        return description, result

    async def of_request(self, request: str) -> Task | None:
        """The task that stands for a request."""
        return next(iter(await self._tasks("request = ?", request)), None)

    async def among(self, ids: Iterable[str]) -> dict[str, Task]:
        """Tasks by their ids; those that there are not are left out."""
        found = await self._tasks(f"id {AMONG}", listed(map(number_of, ids)))
        return {task.id: task for task in found}

    async def tasks(
        self, threads: Collection[str], which: Filter, before: int, limit: int
    ) -> tuple[tuple[Task, ...], bool]:
        """Tasks of these threads with lower numbers than `before`, the latest first."""
        conditions, values = which.sql()
        sql = f"{_TASKS} thread {AMONG} AND id < ?{conditions} ORDER BY id DESC LIMIT ?"
        now = self._host.now()
        return await self.page(_task, sql, now, listed(threads), before, *values, limit=limit)

    async def history(
        self, task: str, before: int, limit: int
    ) -> tuple[tuple[TaskChange, ...], bool]:
        """What made the task's versions before this one, the latest first."""
        sql = (
            f"SELECT {columns(TaskChange)} FROM tasks_change "
            "WHERE task = ? AND version < ? ORDER BY version DESC LIMIT ?"
        )
        return await self.page(_change_of, sql, number_of(task), before, limit=limit)

    # What is due ------------------------------------------------------------------------------

    async def overdue(self, now: float, limit: int) -> list[Task]:
        """Tasks whose time has come, and of which nobody was told."""
        where = f"due <= ? AND {_ACTIVE} AND request IS NULL AND told IS NOT due"
        return await self._tasks(f"{where} ORDER BY due LIMIT ?", now, limit)

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

    async def held_by(self, owner: str, limit: int) -> list[Task]:
        """Tasks that are no requests, and that this participant holds."""
        where = "owner = ? AND state = 'claimed' AND request IS NULL ORDER BY id LIMIT ?"
        return await self._tasks(where, owner, limit)


def board_made(board: Board) -> Statement:
    """A new board; refused if the thread has one of that name, but for its own, without one."""
    made = insert(
        "tasks_board",
        id=number_of(board.id),
        thread=board.thread_id,
        name=board.name,
        created_by=board.created_by,
        created_at=board.created_at.timestamp(),
    )
    return made if board.name else made._replace(sql=made.sql.replace("INTO", "OR IGNORE INTO", 1))


def created(task: Task, description: str) -> Sequence[Statement]:
    return [
        insert(
            "tasks_task",
            id=number_of(task.id),
            board=number_of(task.board),
            thread=task.thread_id,
            description=description,
            result="",
            request=task.request,
            created_by=task.created_by,
            created_at=task.created_at.timestamp(),
            **_values(task),
        ),
        _change(task, task.created_by, "created", ""),
        *_needs(task),
    ]


def _values(task: Task) -> dict[str, Value]:
    """What can be changed."""
    return {
        "title": task.title,
        "state": task.state if task.is_over else "claimed" if task.owner else "open",
        "owner": task.owner,
        "priority": task.priority,
        "labels": json.dumps(task.labels),
        "due": seconds_of(task.due),
        "changed_at": task.changed_at.timestamp(),
        "version": task.version,
    }


def changed(task: Task, by: str, what: str, note: str, **texts: str) -> Sequence[Statement]:
    """The task's next version, if the one before is still the latest; `texts`: description and
    result, where these are others."""
    number = number_of(task.id)
    return [
        update("tasks_task", {**_values(task), **texts}, id=number, version=task.version - 1),
        _change(task, by, what, note),
        Statement("DELETE FROM tasks_dependency WHERE task = ?", (number,)),
        *_needs(task),
    ]


def _needs(task: Task) -> list[Statement]:
    number = number_of(task.id)
    return [insert("tasks_dependency", task=number, needs=number_of(id)) for id in task.depends_on]


def _change(task: Task, by: str, what: str, note: str) -> Statement:
    at, task_no = task.changed_at.timestamp(), number_of(task.id)
    values: tuple[Value, ...] = (task_no, task.version, at, by, what, note)
    return Statement("INSERT INTO tasks_change VALUES (?, ?, ?, ?, ?, ?)", values)


def overdue_announced(task: Task) -> Sequence[Statement]:
    """The thread was told that the task was due then."""
    return [update("tasks_task", {"told": seconds_of(task.due)}, id=number_of(task.id))]


async def checked_needs(
    store: TaskRepository, thread: str, names: Iterable[str], task: str | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those that `task` (None: a new one) is to depend on, and those of them that are not over.

    Raises `OperationError` for a task that is not in the thread, and for a circle, with the names
    of all in it.
    """
    needs = sorted(set(names), key=number_of)
    found = await store.among(needs)
    for id in needs:
        if id not in found or found[id].thread_id != thread:
            text = f"depends_on: there is no task {id} in the thread of this one; see list_tasks"
            raise not_found(text)
    circle = await _way(store, needs, task) if task is not None else []
    if task is not None and circle:
        names = [task, *circle]
        in_it = await store.among(set(names))
        told = " -> ".join(in_it[id].name for id in names)
        text = "depends_on: none of these could ever be claimed, each would wait for the next"
        raise bad_request(f"{text}: {told}", cycle=names)
    return tuple(needs), tuple(id for id in needs if not found[id].is_over)


async def _way(store: TaskRepository, starts: Sequence[str], goal: str) -> list[str]:
    """A shortest way along dependencies from a start to the goal; empty: there is none."""
    came: dict[str, str | None] = dict.fromkeys(starts)
    layer = list(starts)
    while layer and goal not in came:
        tasks = await store.among(layer)
        layer = []
        for task in sorted(tasks.values(), key=lambda each: number_of(each.id)):
            for needed in task.depends_on:
                if needed not in came:
                    came[needed] = task.id
                    layer.append(needed)
    if goal not in came:
        return []
    way = [goal]
    while (before := came[way[0]]) is not None:
        way.insert(0, before)
    return way


def ended(message: Message, mark: RequestMark, body: str) -> Sequence[Statement]:
    """The end of the task for the request that this message ends."""
    at, done = message.sent_at.timestamp(), mark.kind == "result"
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
        Statement(end, ("done" if done else "cancelled", body, at, mark.id)),
        Statement(told, (at, message.sender_id, word, note, mark.id)),
    ]


RETRY_DELAY_S = 60.0
"""Seconds until what could not be done, because the disk refused it, is tried again."""
AT_ONCE = 200
"""Tasks that are looked at in one go."""
SHORT = 200
"""Characters of a result that a message has."""
_AWAY = "away:"


class TaskDeadlines:
    """`changed(task, what, by)` tells those who read the thread."""

    def __init__(
        self,
        host: Host,
        store: TaskRepository,
        queues: KeyedQueues,
        changed: Callable[[Task, str, str], None],
    ):
        self._host, self._store, self._queues, self._changed = host, store, queues, changed
        self._due = Alarm(host, "due")

    async def start(self, release_after: float | None) -> None:
        """Go on where an earlier run of the hub has ended. Nobody is here yet: absences begin."""
        self._due.at(self._host.now())
        for holder in await self._store.holders() if release_after is not None else ():
            self.left(holder, release_after)

    def rung(self, key: str) -> None:
        """A time has come that was asked for."""
        if key == self._due.key:
            self._due.rung()
            self._host.spawn(self._tell_overdue())
        else:
            self._host.spawn(self._release_all(key.removeprefix(_AWAY)))

    # What is overdue --------------------------------------------------------------------------

    def due_at(self, task: Task) -> None:
        """The task has changed: look at it when it is due."""
        if not task.is_over and task.request is None:
            self._due.at(seconds_of(task.due))

    async def _tell_overdue(self) -> None:
        now = self._host.now()
        try:
            tasks = await self._store.overdue(now, AT_ONCE)
            for task in tasks:
                due = seconds_of(task.due)
                with suppress(OperationError):  # another mod refuses it: it is left at that
                    await self._host.tell(
                        task.thread_id,
                        f"{task.name} is overdue{f' ({task.owner} has it)' if task.owner else ''}.",
                        {"task": task.id, "overdue": due},
                        once=f"overdue:{task.id}:{due}",
                        to=(task.owner or task.created_by,),
                    )
                await self._host.keep(overdue_announced(task))
            more = len(tasks) == AT_ONCE
            self._due.at(now if more else await self._store.next_due(now))
        except StoreUnavailable:
            self._due.at(now + RETRY_DELAY_S)
            raise

    # Who is away ------------------------------------------------------------------------------

    def left(self, participant: str, release_after: float | None) -> None:
        """An agent is gone: look in a while whether it has come back."""
        if release_after is not None and self._host.kind_of(participant) == "agent":
            self._host.at(self._host.now() + release_after, _AWAY + participant)

    def came(self, participant: str) -> None:
        """It is back in time, or there was nothing to wait for."""
        self._host.cancel(_AWAY + participant)

    async def _release_all(self, holder: str) -> None:
        try:
            while not self._is_here(holder):
                tasks = await self._store.held_by(holder, AT_ONCE)
                for task in tasks:
                    await self._release(task, holder)
                if len(tasks) < AT_ONCE:
                    return
        except StoreUnavailable:
            self._host.at(self._host.now() + RETRY_DELAY_S, _AWAY + holder)
            raise

    def _is_here(self, holder: str) -> bool:
        known = self._host.participant(holder)
        return known is not None and known.present

    async def _release(self, held: Task, holder: str) -> None:
        async with self._queues.turn(held.thread_id):
            task = await self._store.task(held.id)
            if task is None or task.owner != holder or task.is_over:
                return
            task = changed_task(task, self._host.now(), owner=None)
            note = f"{holder} is away"
            await self._host.keep(changed(task, "hub", "released", note))
        self._changed(task, "released", "hub")
        self._host.notice(
            task.thread_id,
            f"{task.name} is released: {holder}, who held it, is away.",
            {"task": task.id, "released": holder},
            once=f"released:{task.id}:{task.version}",
            to=(task.created_by,),
        )

    # What is done -----------------------------------------------------------------------------

    def announce(self, task: Task, by: str, result: str) -> None:
        """The thread is told that a task is done."""
        result = shortened(" ".join(result.split()), SHORT)
        self._host.notice(
            task.thread_id,
            f"{by} has finished {task.name}{f': {result}' if result else '.'}",
            {"task": task.id, "finished": by},
            once=f"finished:{task.id}:{task.version}",
            to=(task.created_by,),
        )
