"""The mod `tasks`: boards of tasks that people and agents claim and finish.

mods:
  - tasks: {release_after: 30m}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated

from pydantic import Field, JsonValue

from hubbub.config.units import Span
from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.digest.schemas import DigestItem
from hubbub.mods.fields import BEYOND, number_before, time_of
from hubbub.mods.operation import (
    Calling,
    Commit,
    Statement,
    bad_request,
    conflict,
    operation,
    over_limit,
)
from hubbub.mods.repository import KeyedQueues
from hubbub.mods.tasks import repository
from hubbub.mods.tasks.repository import Filter, TaskDeadlines, TaskRepository, checked_needs
from hubbub.mods.tasks.schemas import (
    ACTIONS,
    AssignTask,
    Board,
    BoardOf,
    Boards,
    BoardText,
    ChangeTask,
    CreateBoard,
    CreateTask,
    FinishTask,
    ListBoards,
    ListTasks,
    ReadTask,
    State,
    Task,
    TaskDetails,
    TaskOf,
    Tasks,
    TaskStep,
    UpdateTask,
    apply_step,
    changed_task,
    check_not_request,
)
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, Message, RequestMark
from hubbub.wording import shortened

__all__ = ["TasksConfig", "TasksMod"]


SECTIONS: Mapping[State, tuple[str, int]] = {
    "claimed": ("In progress", 100),
    "open": ("Open", 100),
    "blocked": ("Blocked", 100),
    "done": ("Done", 20),
    "cancelled": ("Cancelled", 20),
}
"""By state: the heading, and the maximum number of tasks shown, latest first."""
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")
_BOX = {"done": "x", "cancelled": "-"}


def as_markdown(
    board: Board, sections: Mapping[State, Sequence[Task]], incomplete: Iterable[State]
) -> str:
    """The tasks by state. `incomplete` are the states with more tasks than given."""
    cut = set(incomplete)
    lines = [f"# {_escaped(board.name or 'Tasks')} ({board.id})"]
    for state, (heading, _) in SECTIONS.items():
        tasks = sections[state]
        if tasks:
            lines += ["", f"## {heading}", "", *map(_line, tasks)]
            lines += ["", "Earlier tasks are not shown."] if state in cut else []
    return "\n".join([*lines, *([] if any(sections.values()) else ["", "No tasks."])]) + "\n"


def _line(task: Task) -> str:
    more = f" ({', '.join(notes)})" if (notes := list(_notes(task))) else ""
    return f"- [{_BOX.get(task.state, ' ')}] {task.id} {_escaped(task.title)}{more}"


def _notes(task: Task) -> Iterator[str]:
    if task.owner is not None:
        yield _escaped(task.owner)
    if task.priority != "normal":
        yield task.priority
    if task.due is not None:
        yield f"{'overdue since' if task.overdue else 'due'} {task.due:%Y-%m-%d %H:%M} UTC"
    if task.waits_for:
        yield f"waits for {', '.join(task.waits_for)}"
    if task.request is not None:
        yield f"request {task.request}"
    yield from map(_escaped, task.labels)


def _escaped(text: str) -> str:
    """The text with Markdown characters escaped."""
    return _MARKS.sub(r"\\\1", text)


_COPIED = {"title", "owner", "priority", "labels", "due", "untrusted"}
"""Fields of a new task that are as given."""
MAX_TITLE, MAX_BODY = 200, 10_000
"""Characters of a request's text in the title, and in the description or result of its task."""


class TasksConfig(ModConfig):
    max_active: Annotated[int, Field(ge=1)] = 1000
    """Maximum number of unfinished tasks per board."""
    max_boards: Annotated[int, Field(ge=1, le=200)] = 50
    """Maximum number of boards per thread."""
    announce: bool = False
    """Whether each finished task is announced in its thread. The message wakes no agent."""
    release_after: Span | None = None
    """Seconds of absence after which an agent's tasks are released. Default: never."""


def _check_due(due: datetime | None, now: float) -> None:
    """Raises `OperationError` for a time in the past."""
    if due is not None and due.timestamp() <= now:
        raise bad_request(f"due: {due:%Y-%m-%d %H:%M %Z} is in the past")


def _title(text: str) -> str:
    """The first line that is not empty."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    line = "".join(c for c in next(filter(None, lines), "") if c.isprintable()) or "request"
    return shortened(line, MAX_TITLE)


class TasksMod(Mod):
    """Boards of tasks with owners, due times and dependencies.

    A board belongs to a thread, whose readers can see, create, claim and finish its tasks. If
    several participants claim a task at once, one of them gets it. Requests between agents
    (`delegate`) are also tasks, on the board of their thread.
    """

    name = "tasks"
    Config = TasksConfig
    config: TasksConfig
    migrations = "tables"

    def __init__(self, config: TasksConfig):
        super().__init__(config)
        self._queues = KeyedQueues()
        """One change at a time per thread, so that of two concurrent claims, or two dependencies
        that together form a cycle, the second is refused."""
        self._store: TaskRepository
        self._deadlines: TaskDeadlines
        self._boards: dict[str, Board] = {}
        """The default boards, which have no name, by thread."""
        self._last = self._last_board = 0

    async def start(self) -> None:
        self._store = TaskRepository(self.host)
        self._deadlines = TaskDeadlines(self.host, self._store, self._queues, self._changed)
        self._last_board = await self._store.last("tasks_board")
        self._last = await self._store.last("tasks_task")
        self._boards = await self._store.default_boards()
        await self._deadlines.start(self.config.release_after)

    # Reading ----------------------------------------------------------------------------------

    async def _board(self, call: Calling, id: str) -> Board:
        """The board, if the caller reads its thread. Raises `OperationError`."""
        return self.host.visible(call, await self._store.board(id), f"board {id}", "list_boards")

    async def _find(self, call: Calling, id: str) -> Task:
        """The task, if the caller reads its thread. Raises `OperationError`."""
        return self.host.visible(call, await self._store.task(id), f"task {id}", "list_tasks")

    async def news(self, call: Calling, after: float, limit: int) -> Sequence[DigestItem]:
        """`DigestSource.news`: tasks held by the caller, without requests, and finished tasks."""
        threads, me = self.host.threads_of(call.participant), call.participant
        items = []
        held = Filter(state="claimed", owner=me, requests=False)
        waiting, _ = await self._store.tasks(threads, held, BEYOND, limit)
        for task in waiting:
            due = f", due {task.due:%Y-%m-%d}" if task.due is not None else ""
            text = f"task {task.id}: {task.title}{due}"
            items.append(DigestItem("waiting", task.thread_id, task.id, text, task.untrusted))
        ended = Filter(state="done", since=after)
        done, _ = await self._store.tasks(threads, ended, BEYOND, limit)
        for task in done:
            by = f" by {task.owner}" if task.owner else ""
            text = f"task {task.id} done{by}: {task.title}"
            items.append(DigestItem("decided", task.thread_id, task.id, text, task.untrusted))
        return items

    @operation()
    async def list_boards(self, call: Calling, args: ListBoards) -> Boards:
        """List the task boards that you can read."""
        threads, before = self.host.threads_for(call, args.thread), number_before(args.before)
        boards, more = await self._store.boards(threads, before, args.limit)
        return Boards(boards=boards, more=more)

    @operation()
    async def list_tasks(self, call: Calling, args: ListTasks) -> Tasks:
        """List tasks on your boards, optionally only those of one board, thread, state or owner, or
        with `ready` those that can be claimed now."""
        threads = self.host.threads_for(call, args.thread)
        if args.board is not None:
            board = await self._board(call, args.board)
            threads = [each for each in threads if each == board.thread_id]
        if args.ready and args.state not in (None, "open"):
            raise bad_request("ready: only open tasks can be ready; omit state")
        which = Filter(args.board, "open" if args.ready else args.state, args.owner)
        before = number_before(args.before)
        tasks, more = await self._store.tasks(threads, which, before, args.limit)
        return Tasks(tasks=tasks, more=more, untrusted=any(task.untrusted for task in tasks))

    @operation()
    async def read_task(self, call: Calling, args: ReadTask) -> TaskDetails:
        """Read a task with its description, result and history."""
        task = await self._find(call, args.task)
        description, result = await self._store.texts(task.id)
        before = args.before or BEYOND
        history, more = await self._store.history(task.id, before, args.limit)
        return TaskDetails(
            task=task,
            description=description,
            result=result,
            history=history,
            more=more,
            untrusted=task.untrusted,
        )

    @operation()
    async def board_as_markdown(self, call: Calling, args: BoardOf) -> BoardText:
        """Read a whole task board as Markdown."""
        board = await self._board(call, args.board)
        sections, cut = dict[State, Sequence[Task]](), list[State]()
        for state, (_, most) in SECTIONS.items():
            which = Filter(board.id, state)
            sections[state], more = await self._store.tasks([board.thread_id], which, BEYOND, most)
            cut += [state] if more else []
        untrusted = any(task.untrusted for tasks in sections.values() for task in tasks)
        text = as_markdown(board, sections, cut)
        return BoardText(board=board, text=text, cut=bool(cut), untrusted=untrusted)

    # Creating ---------------------------------------------------------------------------------

    @operation(permission="write", output=Board)
    async def create_board(self, call: Calling, args: CreateBoard) -> Commit:
        """Create a task board in addition to the default board of a thread."""
        thread, most = self.host.thread(call, args.thread), self.config.max_boards
        async with self._queues.turn(thread) as until:
            boards, _ = await self._store.boards([thread], BEYOND, most)
            same = next((board.id for board in boards if board.name == args.name), None)
            if same is not None:
                raise conflict(f"this thread already has a board {args.name!r}: {same}", board=same)
            if len(boards) >= most:
                raise over_limit(f"the thread has {most} boards, which is the limit")
            board = self._new_board(thread, args.name, call.participant, self.host.now())
            data: JsonValue = {"board": board.id, "name": board.name, "by": call.participant}
            applied = partial(self.host.signal, thread, "board", data)
            return until(Commit([repository.insert_board(board)], board, applied=applied))

    def _new_board(self, thread: str, name: str, by: str, at: float) -> Board:
        self._last_board += 1
        id, when = f"b{self._last_board}", time_of(at)
        return Board(id=id, name=name, thread_id=thread, created_by=by, created_at=when)

    def _default_board(self, thread: str, by: str, at: float) -> Board:
        """The thread's board without a name. The caller inserts it together with the task."""
        if thread not in self._boards:
            self._boards[thread] = self._new_board(thread, "", by, at)
        return self._boards[thread]

    @operation(permission="write", output=Task)
    async def create_task(self, call: Calling, args: CreateTask) -> Commit:
        """Create a task on the board of a thread, for anyone to claim or with an owner."""
        if (args.board is None) == (args.thread is None):
            raise bad_request("give either thread or board")
        now, most, by = self.host.now(), self.config.max_active, call.participant
        if args.board is not None:
            board = await self._board(call, args.board)
        else:
            board = self._default_board(self.host.thread(call, args.thread or ""), by, now)
        async with self._queues.turn(board.thread_id) as until:
            stored = await self._store.board(board.id)
            if stored is not None and stored.active >= most:
                raise over_limit(f"{board.id} has {most} unfinished tasks; finish or cancel some")
            self._check_reader(args.owner, board.thread_id)
            _check_due(args.due, now)
            needs, waits = await checked_needs(self._store, board.thread_id, args.depends_on)
            self._last += 1
            state = "blocked" if waits else "claimed" if args.owner else "open"
            task = Task(
                **args.model_dump(include=_COPIED),
                **{"id": f"t{self._last}", "board": board.id, "thread_id": board.thread_id},
                **{"state": state, "depends_on": needs, "waits_for": waits, "created_by": by},
                created_at=now,
                changed_at=now,
            )
            statements = [] if board.name else [repository.insert_board(board)]
            statements += repository.insert_task(task, args.description)
            return until(self._commit(call, task, statements, "created", notify_owner=True))

    def _check_reader(self, owner: str | None, thread: str) -> None:
        if owner is not None and not self.host.reads(owner, thread):
            text = f"{owner} does not read this thread and would not see the task"
            raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)

    def _commit(
        self,
        call: Calling,
        task: Task,
        statements: Sequence[Statement],
        what: str,
        *,
        notify_owner: bool = False,
        result: str = "",
    ) -> Commit:
        """`notify_owner`: a person who assigns a task to an agent wakes it with a message in the
        person's name. Assignments by agents wake no agent, because two of them could wake each
        other forever."""
        by, owner, messages = call.participant, task.owner, list[Draft]()
        if notify_owner and owner and call.kind == "human" and self.host.kind_of(owner) == "agent":
            text = f"@{owner}, please do {task.name}."
            messages = [self.host.draft(call, task.thread_id, text, mentions=(owner,))]
        applied = partial(self._changed, task, what, by, result)
        return Commit(statements, task, applied=applied, messages=messages)

    def _changed(self, task: Task, what: str, by: str, result: str = "") -> None:
        """Signal a change to the readers of the thread, and announce a finished task if so
        configured."""
        names = {"title", "board", "state", "owner", "version"}
        data: JsonValue = {"task": task.id, "by": by, **task.model_dump(include=names)}
        self.host.signal(task.thread_id, what, data)
        self._deadlines.schedule(task)
        if what == "finished" and self.config.announce and task.request is None:
            self._deadlines.announce(task, by, result)

    # Hooks ------------------------------------------------------------------------------------

    def watches(self, draft: Draft) -> bool:
        return draft.request is not None

    def on_stored(self, message: Message) -> Sequence[Statement]:
        mark = message.request
        assert mark is not None, "`watches` accepts no other"
        self.host.spawn(self._signal_request(mark.id or message.id))
        if mark.ends:
            return repository.end_request(message, mark, message.text[:MAX_BODY])
        return self._insert_for_request(message, mark) if mark.kind == "task" else ()

    def _insert_for_request(self, message: Message, mark: RequestMark) -> Sequence[Statement]:
        """The task for the request in this message."""
        by, at = message.sender_id, message.sent_at
        board = self._default_board(message.thread_id, by, at.timestamp())
        self._last += 1
        task = Task(
            id=f"t{self._last}",
            title=_title(message.text),
            board=board.id,
            thread_id=message.thread_id,
            state="claimed",
            owner=message.recipients[0],
            priority="normal",
            labels=(),
            due=mark.deadline,
            request=message.id,
            created_by=by,
            created_at=at,
            changed_at=at,
            untrusted=message.untrusted,
        )
        return [
            repository.insert_board(board),
            *repository.insert_task(task, message.text[:MAX_BODY]),
        ]

    async def _signal_request(self, request: str) -> None:
        await self.host.write(())  # waits for the commit of the message
        task = await self._store.of_request(request)
        if task is not None:
            (change,), _ = await self._store.history(task.id, BEYOND, 1)
            self._changed(task, change.what, change.by)

    def on_timer(self, key: str) -> None:
        self._deadlines.on_timer(key)

    def on_leave(self, participant: str) -> None:
        self._deadlines.on_leave(participant, self.config.release_after)

    def on_join(self, participant: str) -> None:
        self._deadlines.on_join(participant)

    # Changing ---------------------------------------------------------------------------------

    @operation(permission="write", output=Task)
    async def update_task(self, call: Calling, args: UpdateTask) -> Commit:
        """Change the title, description, due time, priority, labels or dependencies of a task."""
        thread = (await self._find(call, args.task)).thread_id
        async with self._queues.turn(thread) as until:
            task, now = await self._find(call, args.task), self.host.now()
            check_not_request(task)
            if args.version not in (None, task.version):
                raise conflict(
                    f"{task.name} changed: its version is {task.version}, not {args.version}; "
                    "call read_task and decide again",
                    task=task.id,
                    version=task.version,
                )
            names = {"title", "priority", "labels"}
            changes = args.model_dump(include=names, exclude_none=True)
            changes["untrusted"] = task.untrusted or args.untrusted
            if args.due is not None:
                changes["due"] = due = None if args.due == "none" else args.due
                _check_due(due, now)
            if args.depends_on is not None:
                needs, waits = await checked_needs(self._store, thread, args.depends_on, task.id)
                changes |= {"depends_on": needs, "waits_for": waits}
            task = changed_task(task, now, **changes)
            texts = args.model_dump(include={"description"}, exclude_none=True)
            by = call.participant
            statements = repository.update_task(task, by, "updated", args.note, **texts)
            return until(self._commit(call, task, statements, "updated"))

    @operation(permission="write", output=Task)
    async def claim_task(self, call: Calling, args: TaskOf) -> Commit:
        """Claim a task that you will do. It is yours until you finish or release it. If another
        participant already holds it, the error names the holder."""
        return await self._step(call, args.task, TaskStep("claim", call.participant))

    @operation(permission="write", output=Task)
    async def release_task(self, call: Calling, args: ChangeTask) -> Commit:
        """Release a task that you hold, so that others can claim it."""
        step = TaskStep("release", call.participant, untrusted=args.untrusted)
        return await self._step(call, args.task, step, args.note)

    @operation(permission="write", output=Task)
    async def finish_task(self, call: Calling, args: FinishTask) -> Commit:
        """Mark a task as done, with its result."""
        step = TaskStep("finish", call.participant, untrusted=args.untrusted)
        return await self._step(call, args.task, step, result=args.result)

    @operation(permission="write", output=Task)
    async def cancel_task(self, call: Calling, args: ChangeTask) -> Commit:
        """Cancel a task that is no longer needed."""
        step = TaskStep("cancel", call.participant, untrusted=args.untrusted)
        return await self._step(call, args.task, step, args.note)

    @operation(permission="write", output=Task)
    async def reopen_task(self, call: Calling, args: ChangeTask) -> Commit:
        """Reopen a task that was done or cancelled, so that it can be claimed."""
        step = TaskStep("reopen", call.participant, untrusted=args.untrusted)
        return await self._step(call, args.task, step, args.note, result="")

    @operation(permission="write", output=Task)
    async def assign_task(self, call: Calling, args: AssignTask) -> Commit:
        """Assign a task to a participant. Also send them a message, because an assignment wakes an
        agent only if a person makes it."""
        step = TaskStep("assign", call.participant, to=args.to, untrusted=args.untrusted)
        note = f"{args.to}{f': {args.note}' if args.note else ''}"
        return await self._step(call, args.task, step, note)

    async def _step(
        self, call: Calling, id: str, step: TaskStep, note: str = "", **texts: str
    ) -> Commit:
        thread = (await self._find(call, id)).thread_id
        async with self._queues.turn(thread) as until:
            task = await self._find(call, id)
            if step.action == "claim" and (task.owner, task.state) == (step.by, "claimed"):
                return until(Commit((), task))
            self._check_reader(step.to, thread)
            waits = (await self._store.among(task.waits_for)).values()
            task = apply_step(task, step._replace(owner=call.owner), self.host.now(), waits)
            word = ACTIONS[step.action].word
            statements = repository.update_task(task, step.by, word, note, **texts)
            assigned, result = step.to is not None, texts.get("result", "")
            commit = self._commit(
                call, task, statements, word, notify_owner=assigned, result=result
            )
            return until(commit)
