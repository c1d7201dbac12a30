"""The tables of the mod `tasks`, the statements that write them, and the deadlines: overdue tasks,
and the release of tasks of absent agents."""

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
    "checked_needs",
    "end_request",
    "insert_board",
    "insert_task",
    "update_task",
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
    """A filter for tasks. None matches any value."""

    board: str | None = None
    state: State | None = None
    owner: str | None = None
    since: float | None = None
    """Time of the last change."""
    requests: bool = True
    """Whether to include requests."""

    def sql(self) -> tuple[str, list[str | int | float]]:
        """Conditions, each with AND before it, and their values."""
        conditions, values = "", list[str | int | float]()
        if self.board is not None:
            conditions += " AND board = ?"
            values.append(number_of(self.board))
        if self.owner is not None:
            conditions += " AND owner = ?"
            values.append(self.owner)
        if self.state is not None:
            conditions += f" AND {_IN_STATE[self.state]}"
        if self.since is not None:
            conditions += " AND changed_at >= ?"
            values.append(self.since)
        if not self.requests:
            conditions += " AND request IS NULL"
        return conditions, values


class TaskRepository(Repository):
    # Boards -----------------------------------------------------------------------------------

    async def default_boards(self) -> dict[str, Board]:
        """The boards without a name, by thread."""
        return {each.thread_id: each for each in await self.all(_board, f"{_BOARDS} name = ''")}

    async def board(self, id: str) -> Board | None:
        return await self.one(_board, f"{_BOARDS} id = ?", number_of(id))

    async def boards(
        self, threads: Collection[str], before: int, limit: int
    ) -> tuple[tuple[Board, ...], bool]:
        """Boards of these threads with numbers below `before`, latest first."""
        sql = f"{_BOARDS} thread {AMONG} AND id < ? ORDER BY id DESC LIMIT ?"
        return await self.page(_board, sql, listed(threads), before, limit=limit)

    # Tasks ------------------------------------------------------------------------------------

    async def _tasks(self, where: str, *values: Value) -> list[Task]:
        return await self.all(_task, f"{_TASKS} {where}", self._host.now(), *values)

    async def task(self, id: str) -> Task | None:
        return next(iter(await self._tasks("id = ?", number_of(id))), None)

    async def texts(self, id: str) -> tuple[str, str]:
        """Description and result of an existing task."""
        sql = "SELECT description, result FROM tasks_task WHERE id = ?"
        ((description, result),) = await self._host.rows(sql, number_of(id))
        return description, result

    async def of_request(self, request: str) -> Task | None:
        """The task that represents a request."""
        return next(iter(await self._tasks("request = ?", request)), None)

    async def among(self, ids: Iterable[str]) -> dict[str, Task]:
        """Existing tasks by id."""
        tasks = await self._tasks(f"id {AMONG}", listed(map(number_of, ids)))
        return {task.id: task for task in tasks}

    async def tasks(
        self, threads: Collection[str], which: Filter, before: int, limit: int
    ) -> tuple[tuple[Task, ...], bool]:
        """Tasks of these threads with numbers below `before`, latest first."""
        conditions, values = which.sql()
        sql = f"{_TASKS} thread {AMONG} AND id < ?{conditions} ORDER BY id DESC LIMIT ?"
        now = self._host.now()
        return await self.page(_task, sql, now, listed(threads), before, *values, limit=limit)

    async def history(
        self, task: str, before: int, limit: int
    ) -> tuple[tuple[TaskChange, ...], bool]:
        """The changes that led to versions before this one, latest first."""
        sql = (
            f"SELECT {columns(TaskChange)} FROM tasks_change "
            "WHERE task = ? AND version < ? ORDER BY version DESC LIMIT ?"
        )
        return await self.page(_change_of, sql, number_of(task), before, limit=limit)

    # Due times --------------------------------------------------------------------------------

    async def overdue(self, now: float, limit: int) -> list[Task]:
        """Overdue tasks that were not announced yet."""
        where = f"due <= ? AND {_ACTIVE} AND request IS NULL AND told IS NOT due"
        return await self._tasks(f"{where} ORDER BY due LIMIT ?", now, limit)

    async def next_due(self, now: float) -> float | None:
        """The earliest due time after `now`."""
        sql = f"SELECT min(due) FROM tasks_task WHERE due > ? AND {_ACTIVE} AND request IS NULL"
        due: float | None = await self.value(sql, now)
        return due

    async def holders(self) -> list[str]:
        """The holders of tasks that are not requests."""
        sql = (
            "SELECT DISTINCT owner FROM tasks_task "
            "WHERE owner IS NOT NULL AND state = 'claimed' AND request IS NULL"
        )
        return await self.all(str, sql)

    async def held_by(self, owner: str, limit: int) -> list[Task]:
        """Tasks held by this participant, without requests."""
        where = "owner = ? AND state = 'claimed' AND request IS NULL ORDER BY id LIMIT ?"
        return await self._tasks(where, owner, limit)


def insert_board(board: Board) -> Statement:
    """Insert a board. Refused if the thread has one of that name; ignored for the default board,
    which has no name."""
    statement = insert(
        "tasks_board",
        id=number_of(board.id),
        thread=board.thread_id,
        name=board.name,
        created_by=board.created_by,
        created_at=board.created_at.timestamp(),
    )
    if board.name:
        return statement
    return statement._replace(sql=statement.sql.replace("INTO", "OR IGNORE INTO", 1))


def insert_task(task: Task, description: str) -> Sequence[Statement]:
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
        _insert_change(task, task.created_by, "created", ""),
        *_insert_dependencies(task),
    ]


def _values(task: Task) -> dict[str, Value]:
    """The columns that can change."""
    return {
        "title": task.title,
        "state": task.state if task.is_over else "claimed" if task.owner else "open",
        "owner": task.owner,
        "priority": task.priority,
        "labels": json.dumps(task.labels),
        "due": seconds_of(task.due),
        "changed_at": task.changed_at.timestamp(),
        "version": task.version,
        "untrusted": int(task.untrusted),
    }


def update_task(task: Task, by: str, what: str, note: str, **texts: str) -> Sequence[Statement]:
    """Store the task's next version, if the previous one is still the latest. `texts`: description
    and result, if they changed."""
    number = number_of(task.id)
    return [
        update("tasks_task", {**_values(task), **texts}, id=number, version=task.version - 1),
        _insert_change(task, by, what, note),
        Statement("DELETE FROM tasks_dependency WHERE task = ?", (number,)),
        *_insert_dependencies(task),
    ]


def _insert_dependencies(task: Task) -> list[Statement]:
    number = number_of(task.id)
    return [insert("tasks_dependency", task=number, needs=number_of(id)) for id in task.depends_on]


def _insert_change(task: Task, by: str, what: str, note: str) -> Statement:
    at, task_no = task.changed_at.timestamp(), number_of(task.id)
    values: tuple[Value, ...] = (task_no, task.version, at, by, what, note)
    return Statement("INSERT INTO tasks_change VALUES (?, ?, ?, ?, ?, ?)", values)


def mark_overdue_announced(task: Task) -> Sequence[Statement]:
    """Record that this due time was announced as passed."""
    return [update("tasks_task", {"told": seconds_of(task.due)}, id=number_of(task.id))]


async def checked_needs(
    store: TaskRepository, thread: str, names: Iterable[str], task: str | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The new dependencies of `task` (None for a new task), and the unfinished ones among them.

    Raises `OperationError` for a dependency outside the thread, and for a cycle, naming its tasks.
    """
    needs = sorted(set(names), key=number_of)
    tasks = await store.among(needs)
    for id in needs:
        if id not in tasks or tasks[id].thread_id != thread:
            text = f"depends_on: there is no task {id} in the thread of this task; see list_tasks"
            raise not_found(text)
    path = await _shortest_path(store, needs, task) if task is not None else []
    if task is not None and path:
        ids = [task, *path]
        in_cycle = await store.among(set(ids))
        names = " -> ".join(in_cycle[id].name for id in ids)
        text = "depends_on: these tasks would wait for each other, and none could be claimed"
        raise bad_request(f"{text}: {names}", cycle=ids)
    return tuple(needs), tuple(id for id in needs if not tasks[id].is_over)


async def _shortest_path(store: TaskRepository, starts: Sequence[str], goal: str) -> list[str]:
    """A shortest path along dependencies from a start to the goal. Empty if there is none."""
    previous: dict[str, str | None] = dict.fromkeys(starts)
    layer = list(starts)
    while layer and goal not in previous:
        tasks = await store.among(layer)
        layer = []
        for task in sorted(tasks.values(), key=lambda each: number_of(each.id)):
            for needed in task.depends_on:
                if needed not in previous:
                    previous[needed] = task.id
                    layer.append(needed)
    if goal not in previous:
        return []
    path = [goal]
    while (before := previous[path[0]]) is not None:
        path.insert(0, before)
    return path


def end_request(message: Message, mark: RequestMark, body: str) -> Sequence[Statement]:
    """End the task of the request that this message ends."""
    at, done = message.sent_at.timestamp(), mark.kind == "result"
    end = (
        "UPDATE tasks_task SET state = ?, result = ?, changed_at = ?, version = version + 1, "
        "untrusted = max(untrusted, ?) "
        "WHERE request = ? AND state = 'claimed'"
    )
    change = (  # ignored if the task ended before, because that version already has a change
        "INSERT OR IGNORE INTO tasks_change SELECT id, version, ?, ?, ?, ? FROM tasks_task "
        "WHERE request = ?"
    )
    word, note = ("finished", "") if done else ("cancelled", mark.outcome)
    return [
        Statement(
            end, ("done" if done else "cancelled", body, at, int(message.untrusted), mark.id)
        ),
        Statement(change, (at, message.sender_id, word, note, mark.id)),
    ]


RETRY_DELAY_S = 60.0
"""Seconds before work is retried after the store failed."""
BATCH = 200
"""Tasks processed per round."""
MAX_RESULT = 200
"""Characters of a result shown in an announcement."""
_AWAY = "away:"


class TaskDeadlines:
    """Announces overdue tasks, and releases the tasks of absent agents.

    `changed(task, what, by)` is called after each change.
    """

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
        """Resume after a restart. All participants are absent at first, so absences begin now."""
        self._due.at(self._host.now())
        for holder in await self._store.holders() if release_after is not None else ():
            self.on_leave(holder, release_after)

    def on_timer(self, key: str) -> None:
        """Handle a timer of this class."""
        if key == self._due.key:
            self._due.rung()
            self._host.spawn(self._announce_overdue())
        else:
            self._host.spawn(self._release_all(key.removeprefix(_AWAY)))

    # Overdue tasks ----------------------------------------------------------------------------

    def schedule(self, task: Task) -> None:
        """Set the timer for the due time of a changed task."""
        if not task.is_over and task.request is None:
            self._due.at(seconds_of(task.due))

    async def _announce_overdue(self) -> None:
        now = self._host.now()
        try:
            tasks = await self._store.overdue(now, BATCH)
            for task in tasks:
                due = seconds_of(task.due)
                with suppress(OperationError):  # another mod rejects it, which is final
                    await self._host.post_notice(
                        task.thread_id,
                        f"{task.name} is overdue{f' (owner: {task.owner})' if task.owner else ''}.",
                        {"task": task.id, "overdue": due},
                        once=f"overdue:{task.id}:{due}",
                        to=(task.owner or task.created_by,),
                    )
                await self._host.write(mark_overdue_announced(task))
            more = len(tasks) == BATCH
            self._due.at(now if more else await self._store.next_due(now))
        except StoreUnavailable:
            self._due.at(now + RETRY_DELAY_S)
            raise

    # Absent agents ----------------------------------------------------------------------------

    def on_leave(self, participant: str, release_after: float | None) -> None:
        """Start the timer for an agent that left."""
        if release_after is not None and self._host.kind_of(participant) == "agent":
            self._host.at(self._host.now() + release_after, _AWAY + participant)

    def on_join(self, participant: str) -> None:
        """Cancel the timer of the participant, if any."""
        self._host.cancel(_AWAY + participant)

    async def _release_all(self, holder: str) -> None:
        try:
            while not self._is_present(holder):
                tasks = await self._store.held_by(holder, BATCH)
                for task in tasks:
                    await self._release(task, holder)
                if len(tasks) < BATCH:
                    return
        except StoreUnavailable:
            self._host.at(self._host.now() + RETRY_DELAY_S, _AWAY + holder)
            raise

    def _is_present(self, holder: str) -> bool:
        participant = self._host.participant(holder)
        return participant is not None and participant.present

    async def _release(self, held: Task, holder: str) -> None:
        async with self._queues.turn(held.thread_id):
            task = await self._store.task(held.id)
            if task is None or task.owner != holder or task.is_over:
                return
            task = changed_task(task, self._host.now(), owner=None)
            note = f"{holder} is away"
            await self._host.write(update_task(task, "hub", "released", note))
        self._changed(task, "released", "hub")
        self._host.notice(
            task.thread_id,
            f"{task.name} was released because its owner {holder} is away.",
            {"task": task.id, "released": holder},
            once=f"released:{task.id}:{task.version}",
            to=(task.created_by,),
        )

    # Finished tasks ---------------------------------------------------------------------------

    def announce(self, task: Task, by: str, result: str) -> None:
        """Announce a finished task in its thread."""
        result = shortened(" ".join(result.split()), MAX_RESULT)
        self._host.notice(
            task.thread_id,
            f"{by} finished {task.name}{f': {result}' if result else '.'}",
            {"task": task.id, "finished": by},
            once=f"finished:{task.id}:{task.version}",
            to=(task.created_by,),
        )
