"""The mod `tasks`: boards with tasks that people and agents claim and finish.

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


TITLE, BODY = 200, 10_000
"""Characters that a task has of what was said in a request."""


class TasksConfig(ModConfig):
    max_active: Annotated[int, Field(ge=1)] = 1000
    """Tasks of one board that are not over."""
    max_boards: Annotated[int, Field(ge=1, le=200)] = 50
    """Boards of one thread."""
    announce: bool = False
    """Whether the thread gets a short message of each task that is done. It wakes nobody."""
    release_after: Span | None = None
    """Seconds that an agent may be away before the tasks that it holds are released."""


def _check_due(due: datetime | None, now: float) -> None:
    """Raises `OperationError` for a time that has passed."""
    if due is not None and due.timestamp() <= now:
        raise bad_request(f"due: {due:%Y-%m-%d %H:%M %Z} has passed")


def _title(text: str) -> str:
    """The first line that says something."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    line = "".join(c for c in next(filter(None, lines), "") if c.isprintable()) or "request"
    return shortened(line, TITLE)


class TasksMod(Mod):
    """Boards with tasks: who does what until when, and what must be done before.

    A board belongs to a thread: who reads the thread sees its tasks, creates, claims and finishes
    them. Of several who claim a task at once one gets it. Requests between agents (`delegate`) are
    tasks, too, on the board of their thread.
    """

    name = "tasks"
    Config = TasksConfig
    config: TasksConfig
    migrations = "tables"

    def __init__(self, config: TasksConfig):
        super().__init__(config)
        self._queues = KeyedQueues()
        """One change at a time in each thread: of two who claim one task, or whose dependencies
        would together make a circle, the second sees what the first has done."""
        self._store: TaskRepository
        self._duties: TaskDeadlines
        self._boards: dict[str, Board] = {}
        """The boards without a name, by thread."""
        self._last = self._last_board = 0

    async def start(self) -> None:
        self._store = TaskRepository(self.host)
        self._duties = TaskDeadlines(self.host, self._store, self._queues, self._changed)
        self._last_board = await self._store.last("tasks_board")
        self._last = await self._store.last("tasks_task")
        self._boards = await self._store.own_boards()
        await self._duties.start(self.config.release_after)

    # Reading ----------------------------------------------------------------------------------

    async def _board(self, call: Calling, id: str) -> Board:
        """The board, if the caller reads its thread. Raises `OperationError`."""
        return self.host.visible(call, await self._store.board(id), f"board {id}", "list_boards")

    async def _find(self, call: Calling, id: str) -> Task:
        """The task, if the caller reads its thread. Raises `OperationError`."""
        return self.host.visible(call, await self._store.task(id), f"task {id}", "list_tasks")

    async def news(self, call: Calling, after: float, limit: int) -> Sequence[DigestItem]:
        """`DigestSource.news`: tasks that the caller holds, besides requests, and what was done."""
        threads, mine = (
            self.host.threads_of(call.participant),
            Filter(None, "claimed", call.participant),
        )
        found = []
        waiting, _ = await self._store.tasks(threads, mine, BEYOND, limit)
        for task in waiting:
            if task.request is None:
                due = f", due {task.due:%Y-%m-%d}" if task.due is not None else ""
                text = f"task {task.id}: {task.title}{due}"
                found.append(DigestItem("waiting", task.thread_id, task.id, text))
        done, _ = await self._store.tasks(threads, Filter(state="done"), BEYOND, limit)
        for task in done:
            if task.changed_at.timestamp() >= after:
                by = f" by {task.owner}" if task.owner else ""
                text = f"task {task.id} done{by}: {task.title}"
                found.append(DigestItem("decided", task.thread_id, task.id, text))
        return found

    @operation()
    async def list_boards(self, call: Calling, args: ListBoards) -> Boards:
        """List the task boards that you may read."""
        threads, before = self.host.threads_for(call, args.thread), number_before(args.before)
        boards, more = await self._store.boards(threads, before, args.limit)
        return Boards(boards=boards, more=more)

    @operation()
    async def list_tasks(self, call: Calling, args: ListTasks) -> Tasks:
        """List tasks of your boards: those of one board, thread, state or owner, or with `ready`
        those that can be claimed now."""
        threads = self.host.threads_for(call, args.thread)
        if args.board is not None:
            board = await self._board(call, args.board)
            threads = [each for each in threads if each == board.thread_id]
        if args.ready and args.state not in (None, "open"):
            raise bad_request("ready: only open tasks are ready")
        which = Filter(args.board, "open" if args.ready else args.state, args.owner)
        before = number_before(args.before)
        tasks, more = await self._store.tasks(threads, which, before, args.limit)
        return Tasks(tasks=tasks, more=more)

    @operation()
    async def read_task(self, call: Calling, args: ReadTask) -> TaskDetails:
        """Read a task: its description, its result, and who has done what with it."""
        task = await self._find(call, args.task)
        description, result = await self._store.texts(task.id)
        before = args.before or BEYOND
        history, more = await self._store.history(task.id, before, args.limit)
        return TaskDetails(
            task=task, description=description, result=result, history=history, more=more
        )

    @operation()
    async def board_as_markdown(self, call: Calling, args: BoardOf) -> BoardText:
        """Read a whole task board as Markdown."""
        board = await self._board(call, args.board)
        parts, cut = dict[State, Sequence[Task]](), list[State]()
        for state, (_, most) in PARTS.items():
            which = Filter(board.id, state)
            parts[state], more = await self._store.tasks([board.thread_id], which, BEYOND, most)
            cut += [state] if more else []
        return BoardText(board=board, text=as_markdown(board, parts, cut), cut=bool(cut))

    # Making -----------------------------------------------------------------------------------

    @operation(permission="write", output=Board)
    async def create_board(self, call: Calling, args: CreateBoard) -> Commit:
        """Create a task board besides the one that each thread has of its own."""
        thread, most = self.host.thread(call, args.thread), self.config.max_boards
        async with self._queues.turn(thread) as until:
            there, _ = await self._store.boards([thread], BEYOND, most)
            same = next((board.id for board in there if board.name == args.name), None)
            if same is not None:
                raise conflict(f"there is a board {args.name!r} here already: {same}", board=same)
            if len(there) >= most:
                raise over_limit(f"at most {most} boards in one thread")
            board = self._new_board(thread, args.name, call.participant, self.host.now())
            data: JsonValue = {"board": board.id, "name": board.name, "by": call.participant}
            applied = partial(self.host.signal, thread, "board", data)
            return until(Commit([repository.board_made(board)], board, applied=applied))

    def _new_board(self, thread: str, name: str, by: str, at: float) -> Board:
        self._last_board += 1
        id, when = f"b{self._last_board}", time_of(at)
        return Board(id=id, name=name, thread_id=thread, created_by=by, created_at=when)

    def _own_board(self, thread: str, by: str, at: float) -> Board:
        """The thread's board without a name; whoever writes on it writes it, too, if need be."""
        if thread not in self._boards:
            self._boards[thread] = self._new_board(thread, "", by, at)
        return self._boards[thread]

    @operation(permission="write", output=Task)
    async def create_task(self, call: Calling, args: CreateTask) -> Commit:
        """Create a task on the board of a thread, for whoever claims it or for somebody."""
        if (args.board is None) == (args.thread is None):
            raise bad_request("name either a thread or a board")
        now, most, by = self.host.now(), self.config.max_active, call.participant
        if args.board is not None:
            board = await self._board(call, args.board)
        else:
            board = self._own_board(self.host.thread(call, args.thread or ""), by, now)
        async with self._queues.turn(board.thread_id) as until:
            there = await self._store.board(board.id)
            if there is not None and there.active >= most:
                raise over_limit(f"{board.id} has {most} tasks that are not over; finish some")
            self._check_reader(args.owner, board.thread_id)
            _check_due(args.due, now)
            needs, waits = await checked_needs(self._store, board.thread_id, args.depends_on)
            self._last += 1
            state = "blocked" if waits else "claimed" if args.owner else "open"
            task = Task(
                **args.model_dump(include={"title", "owner", "priority", "labels", "due"}),
                **{"id": f"t{self._last}", "board": board.id, "thread_id": board.thread_id},
                **{"state": state, "depends_on": needs, "waits_for": waits, "created_by": by},
                created_at=now,
                changed_at=now,
            )
            made = [] if board.name else [repository.board_made(board)]
            made += repository.created(task, args.description)
            return until(self._commit(call, task, made, "created", gives=True))

    def _check_reader(self, owner: str | None, thread: str) -> None:
        if owner is not None and not self.host.reads(owner, thread):
            text = f"{owner} does not read this thread, and would not see the task"
            raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)

    def _commit(
        self,
        call: Calling,
        task: Task,
        statements: Sequence[Statement],
        what: str,
        *,
        gives: bool = False,
        result: str = "",
    ) -> Commit:
        """`gives`: its owner is one to whom the caller gives it. An agent is woken by what a person
        gives it: in that person's name, like a message. What agents give each other wakes nobody,
        or two of them could go on for ever."""
        by, owner, messages = call.participant, task.owner, list[Draft]()
        if gives and owner and call.kind == "human" and self.host.kind_of(owner) == "agent":
            text = f"@{owner}, please do {task.name}."
            messages = [self.host.draft(call, task.thread_id, text, mentions=(owner,))]
        applied = partial(self._changed, task, what, by, result)
        return Commit(statements, task, applied=applied, messages=messages)

    def _changed(self, task: Task, what: str, by: str, result: str = "") -> None:
        """Those who have the board open are told; with `announce` the thread of what is done."""
        names = {"title", "board", "state", "owner", "version"}
        data: JsonValue = {"task": task.id, "by": by, **task.model_dump(include=names)}
        self.host.signal(task.thread_id, what, data)
        self._duties.due_at(task)
        if what == "finished" and self.config.announce and task.request is None:
            self._duties.announce(task, by, result)

    # What happens -----------------------------------------------------------------------------

    def watches(self, draft: Draft) -> bool:
        return draft.request is not None

    def on_stored(self, message: Message) -> Sequence[Statement]:
        mark = message.request
        assert mark is not None, "no other is watched"
        self.host.spawn(self._tell_of_request(mark.id or message.id))
        if mark.ends:
            return repository.ended(message, mark, message.text[:BODY])
        return self._asked(message, mark) if mark.kind == "task" else ()

    def _asked(self, message: Message, mark: RequestMark) -> Sequence[Statement]:
        """A task for the request that this message makes."""
        by, at = message.sender_id, message.sent_at
        board = self._own_board(message.thread_id, by, at.timestamp())
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
        )
        return [repository.board_made(board), *repository.created(task, message.text[:BODY])]

    async def _tell_of_request(self, request: str) -> None:
        await self.host.keep(())  # a commit after that of the message, which is under way
        task = await self._store.of_request(request)
        if task is not None:
            (change,), _ = await self._store.history(task.id, BEYOND, 1)
            self._changed(task, change.what, change.by)

    def on_timer(self, key: str) -> None:
        self._duties.rung(key)

    def on_leave(self, participant: str) -> None:
        self._duties.left(participant, self.config.release_after)

    def on_join(self, participant: str) -> None:
        self._duties.came(participant)

    # Changing ---------------------------------------------------------------------------------

    @operation(permission="write", output=Task)
    async def update_task(self, call: Calling, args: UpdateTask) -> Commit:
        """Change what a task says: title, description, due time, priority, labels, and what it
        depends on."""
        thread = (await self._find(call, args.task)).thread_id
        async with self._queues.turn(thread) as until:
            task, now = await self._find(call, args.task), self.host.now()
            check_not_request(task)
            if args.version not in (None, task.version):
                raise conflict(
                    f"{task.name} has version {task.version} by now, not {args.version}: "
                    "read_task, and decide anew",
                    task=task.id,
                    version=task.version,
                )
            names = {"title", "priority", "labels"}
            given = args.model_dump(include=names, exclude_none=True)
            if args.due is not None:
                given["due"] = due = None if args.due == "none" else args.due
                _check_due(due, now)
            if args.depends_on is not None:
                needs, waits = await checked_needs(self._store, thread, args.depends_on, task.id)
                given |= {"depends_on": needs, "waits_for": waits}
            task = changed_task(task, now, **given)
            texts = args.model_dump(include={"description"}, exclude_none=True)
            changed = repository.changed(task, call.participant, "updated", args.note, **texts)
            return until(self._commit(call, task, changed, "updated"))

    @operation(permission="write", output=Task)
    async def claim_task(self, call: Calling, args: TaskOf) -> Commit:
        """Claim a task that you will do: it is yours until you finish or release it. If somebody
        else was faster you are told who."""
        return await self._step(call, args.task, TaskStep("claim", call.participant))

    @operation(permission="write", output=Task)
    async def release_task(self, call: Calling, args: ChangeTask) -> Commit:
        """Give back a task that you hold: others may claim it."""
        return await self._step(call, args.task, TaskStep("release", call.participant), args.note)

    @operation(permission="write", output=Task)
    async def finish_task(self, call: Calling, args: FinishTask) -> Commit:
        """Mark a task as done, with its result."""
        step = TaskStep("finish", call.participant)
        return await self._step(call, args.task, step, result=args.result)

    @operation(permission="write", output=Task)
    async def cancel_task(self, call: Calling, args: ChangeTask) -> Commit:
        """Cancel a task that nobody needs to do any more."""
        return await self._step(call, args.task, TaskStep("cancel", call.participant), args.note)

    @operation(permission="write", output=Task)
    async def reopen_task(self, call: Calling, args: ChangeTask) -> Commit:
        """Open a task again that was done or cancelled: others may claim it."""
        step = TaskStep("reopen", call.participant)
        return await self._step(call, args.task, step, args.note, result="")

    @operation(permission="write", output=Task)
    async def assign_task(self, call: Calling, args: AssignTask) -> Commit:
        """Give a task to somebody who is to do it. Tell them with a message: only what a person
        assigns to an agent wakes it by itself."""
        step = TaskStep("assign", call.participant, to=args.to)
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
            statements = repository.changed(task, step.by, word, note, **texts)
            gives, result = step.to is not None, texts.get("result", "")
            return until(self._commit(call, task, statements, word, gives=gives, result=result))
