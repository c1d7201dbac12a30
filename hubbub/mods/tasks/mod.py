"""The mod `tasks`: boards with tasks that people and agents claim and finish.

mods:
  - tasks: {release_after: 30m}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from pydantic import AwareDatetime, Field, JsonValue

from hubbub.config.units import Span
from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.digest_items import DigestItem
from hubbub.mods.fields import BEYOND, number_before, number_of
from hubbub.mods.operation import Calling, Commit, operation
from hubbub.mods.queues import KeyedQueues
from hubbub.mods.repository import page_of
from hubbub.mods.rows import Statement
from hubbub.mods.tasks import repository
from hubbub.mods.tasks.duties import Duties
from hubbub.mods.tasks.repository import Filter, TaskRepository, checked_needs
from hubbub.mods.tasks.schemas import (
    AssignTask,
    Board,
    BoardAsMarkdown,
    Boards,
    BoardText,
    CancelTask,
    ClaimTask,
    CreateBoard,
    CreateTask,
    FinishTask,
    ListBoards,
    ListTasks,
    ReadTask,
    ReleaseTask,
    ReopenTask,
    State,
    Task,
    TaskDetails,
    Tasks,
    UpdateTask,
)
from hubbub.mods.tasks.states import (
    ACTIONS,
    BoardRow,
    TaskRecord,
    TaskRow,
    TaskStep,
    check_free,
    stepped,
)
from hubbub.mods.tasks.views import PARTS, as_markdown, news_of
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, Message

__all__ = ["TasksConfig", "TasksMod"]


class TasksConfig(ModConfig):
    max_active: Annotated[int, Field(ge=1)] = 1000
    """Tasks of one board that are not over."""
    max_boards: Annotated[int, Field(ge=1, le=200)] = 50
    """Boards of one thread."""
    announce: bool = False
    """Whether the thread gets a short message of each task that is done. It wakes nobody."""
    release_after: Span | None = None
    """Seconds that an agent may be away before the tasks that it holds are released."""


def due_time(due: AwareDatetime | None, now: float) -> float | None:
    """Raises `OperationError` for a time that has passed."""
    if due is None:
        return None
    if due.timestamp() <= now:
        raise OperationError(ErrorCode.BAD_REQUEST, f"due: {due:%Y-%m-%d %H:%M %Z} has passed")
    return due.timestamp()


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
        self._duties: Duties
        self._boards: dict[str, BoardRow] = {}
        """The boards without a name, by thread."""
        self._last = self._last_board = 0

    async def start(self) -> None:
        self._store = TaskRepository(self.host)
        self._duties = Duties(self.host, self._store, self._queues, self._changed)
        self._last_board, self._last = await self._store.last()
        self._boards = await self._store.own_boards()
        await self._duties.start(self.config.release_after)

    # Reading ----------------------------------------------------------------------------------

    async def _board(self, call: Calling, id: str) -> BoardRow:
        """The board, if the caller reads its thread. Raises `OperationError`."""
        row = await self._store.board(number_of(id))
        return self.host.visible(call, row, f"board {id}", "list_boards")

    async def _find(self, call: Calling, id: str) -> TaskRecord:
        """The task, if the caller reads its thread. Raises `OperationError`."""
        found = await self._store.task(number_of(id))
        return self.host.visible(call, found, f"task {id}", "list_tasks")

    async def news(self, call: Calling, after: float, limit: int) -> Sequence[DigestItem]:
        """`DigestSource.news`."""
        threads = self.host.threads_of(call.participant)
        return await news_of(self._store, threads, call.participant, after, limit)

    @operation()
    async def list_boards(self, call: Calling, args: ListBoards) -> Boards:
        """List the task boards that you may read."""
        threads, before = self.host.threads_for(call, args.thread), number_before(args.before)
        rows = await self._store.boards(threads, before, args.limit + 1)
        page, more = page_of(rows, args.limit)
        return Boards(boards=tuple(await self._store.counted(page)), more=more)

    @operation()
    async def list_tasks(self, call: Calling, args: ListTasks) -> Tasks:
        """List tasks of your boards: those of one board, thread, state or owner, or with `ready`
        those that can be claimed now."""
        threads, board = self.host.threads_for(call, args.thread), None
        if args.board is not None:
            row = await self._board(call, args.board)
            board, threads = row.id, [each for each in threads if each == row.thread]
        if args.ready and args.state not in (None, "open"):
            raise OperationError(ErrorCode.BAD_REQUEST, "ready: only open tasks are ready")
        which = Filter(board, "open" if args.ready else args.state, args.owner)
        before = number_before(args.before)
        found = await self._store.tasks(threads, which, before, args.limit + 1)
        page, more = page_of(found, args.limit)
        now = self.host.now()
        return Tasks(tasks=tuple(each.to_schema(now) for each in page), more=more)

    @operation()
    async def read_task(self, call: Calling, args: ReadTask) -> TaskDetails:
        """Read a task: its description, its result, and who has done what with it."""
        found = await self._find(call, args.task)
        row = found.row
        changes = await self._store.history(row.id, args.before or BEYOND, args.limit + 1)
        history, more = page_of(changes, args.limit)
        return TaskDetails(
            task=found.to_schema(self.host.now()),
            description=row.description,
            result=row.result,
            history=tuple(history),
            more=more,
        )

    @operation()
    async def board_as_markdown(self, call: Calling, args: BoardAsMarkdown) -> BoardText:
        """Read a whole task board as Markdown."""
        row = await self._board(call, args.board)
        (board,) = await self._store.counted([row])
        now, parts, more = self.host.now(), dict[State, Sequence[Task]](), list[State]()
        for state, (_, most) in PARTS.items():
            which = Filter(row.id, state)
            found = await self._store.tasks([row.thread], which, BEYOND, most + 1)
            parts[state] = [each.to_schema(now) for each in found[:most]]
            more += [state] if len(found) > most else []
        return BoardText(board=board, text=as_markdown(board, parts, more), cut=bool(more))

    # Making -----------------------------------------------------------------------------------

    @operation(permission="write", output=Board)
    async def create_board(self, call: Calling, args: CreateBoard) -> Commit:
        """Create a task board besides the one that each thread has of its own."""
        thread = self.host.thread(call, args.thread)
        return await self._queues.in_turn(
            thread, lambda: self._create_board(call, thread, args.name)
        )

    async def _create_board(self, call: Calling, thread: str, name: str) -> Commit:
        most = self.config.max_boards
        there = await self._store.boards([thread], BEYOND, most)
        same = next((board for board in there if board.name == name), None)
        if same is not None:
            text = f"there is a board {name!r} here already: b{same.id}"
            raise OperationError(ErrorCode.CONFLICT, text, details={"board": f"b{same.id}"})
        if len(there) >= most:
            raise OperationError(ErrorCode.LIMIT, f"at most {most} boards in one thread")
        self._last_board += 1
        row = BoardRow(self._last_board, thread, name, call.participant, self.host.now())
        data: JsonValue = {"board": f"b{row.id}", "name": name, "by": call.participant}
        kept = partial(self.host.signal, thread, "board", data)
        return Commit([repository.board_made(row)], row.to_schema(), applied=kept)

    def _own_board(self, thread: str, by: str, at: float) -> BoardRow:
        """The thread's board without a name; whoever writes on it writes it, too, if need be."""
        if thread not in self._boards:
            self._last_board += 1
            self._boards[thread] = BoardRow(self._last_board, thread, "", by, at)
        return self._boards[thread]

    @operation(permission="write", output=Task)
    async def create_task(self, call: Calling, args: CreateTask) -> Commit:
        """Create a task on the board of a thread, for whoever claims it or for somebody."""
        if (args.board is None) == (args.thread is None):
            raise OperationError(ErrorCode.BAD_REQUEST, "name either a thread or a board")
        if args.board is not None:
            board = await self._board(call, args.board)
        else:
            thread = self.host.thread(call, args.thread or "")
            board = self._own_board(thread, call.participant, self.host.now())
        return await self._queues.in_turn(board.thread, lambda: self._create(call, board, args))

    async def _create(self, call: Calling, board: BoardRow, args: CreateTask) -> Commit:
        most, now = self.config.max_active, self.host.now()
        if await self._store.active(board.id) >= most:
            text = f"b{board.id} has {most} tasks that are not over; finish or cancel some"
            raise OperationError(ErrorCode.LIMIT, text)
        if args.owner is not None:
            self._check_reader(args.owner, board.thread)
        needs = await checked_needs(self._store, board.thread, args.depends_on)
        rows = await self._store.rows_of(needs)
        self._last += 1
        row = TaskRow(
            id=self._last,
            board=board.id,
            thread=board.thread,
            title=args.title,
            description=args.description,
            state="open" if args.owner is None else "claimed",
            owner=args.owner,
            priority=args.priority,
            labels=json.dumps(args.labels),
            due=due_time(args.due, now),
            result="",
            created_by=call.participant,
            created_at=now,
            changed_at=now,
            version=1,
            request=None,
        )
        waits = [id for id, each in rows.items() if each.state in ("open", "claimed")]
        found = TaskRecord(row, needs, sorted(waits))
        there = [repository.board_there(board)] if not board.name else []
        statements = [*there, *repository.created(row, needs)]
        commit = self._commit(found, statements, "created", call.participant)
        self._tell_owner(call, row, commit)
        return commit

    def _check_reader(self, owner: str, thread: str) -> None:
        if not self.host.reads(owner, thread):
            text = f"{owner} does not read this thread, and would not see the task"
            raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)

    def _tell_owner(self, call: Calling, row: TaskRow, commit: Commit) -> None:
        """An agent is woken by what a person gives it: in that person's name, like a message. What
        agents give each other wakes nobody, or two of them could go on for ever."""
        if row.owner and call.kind == "human" and self.host.kind_of(row.owner) == "agent":
            text = f"@{row.owner}, please do {row.name}."
            commit.messages = [self.host.draft(call, row.thread, text, mentions=(row.owner,))]

    # Changes ----------------------------------------------------------------------------------

    def _commit(
        self, found: TaskRecord, statements: Sequence[Statement], what: str, by: str
    ) -> Commit:
        kept = partial(self._changed, found, what, by)
        return Commit(statements, found.to_schema(self.host.now()), applied=kept)

    def _changed(self, found: TaskRecord, what: str, by: str) -> None:
        """Those who have the board open are told; with `announce` the thread of what is done."""
        row = found.row
        data: JsonValue = {
            "task": f"t{row.id}",
            "board": f"b{row.board}",
            "title": row.title,
            "state": found.state,
            "owner": row.owner,
            "version": row.version,
            "by": by,
        }
        self.host.signal(row.thread, what, data)
        self._duties.due_at(row)
        if what == "finished" and self.config.announce and row.request is None:
            self._duties.announce(row, by)

    # What happens -----------------------------------------------------------------------------

    def watches(self, draft: Draft) -> bool:
        return draft.request is not None or draft.sender_kind == "system"

    def on_stored(self, message: Message) -> Sequence[Statement]:
        mark = message.request
        if mark is None:
            said_here = message.sender_kind == "system" and not message.imported
            return self._duties.announced(message) if said_here else ()
        self.host.spawn(self._tell_of_request(mark.id or message.id))
        if mark.kind != "task":
            return repository.ended(message, mark)
        at = message.sent_at.timestamp()
        self._last += 1
        board = self._own_board(message.thread_id, message.sender_id, at)
        return repository.asked(message, mark, board, self._last)

    async def _tell_of_request(self, request: str) -> None:
        await self.host.keep(())  # a commit after that of the message, which is under way
        found = await self._store.of_request(request)
        if found is not None:
            change = (await self._store.history(found.row.id, BEYOND, 1))[0]
            self._changed(found, change.what, change.by)

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
        found = await self._find(call, args.task)
        return await self._queues.in_turn(found.row.thread, lambda: self._update(call, args))

    async def _update(self, call: Calling, args: UpdateTask) -> Commit:
        found, now = await self._find(call, args.task), self.host.now()
        row = found.row
        check_free(row)
        if args.version not in (None, row.version):
            raise OperationError(
                ErrorCode.CONFLICT,
                f"{row.name} has version {row.version} by now, not {args.version}: read_task, and "
                "decide anew",
                details={"task": args.task, "version": row.version},
            )
        given = args.model_dump(include={"title", "description", "priority"}, exclude_none=True)
        if args.labels is not None:
            given["labels"] = json.dumps(args.labels)
        if args.due is not None:
            given["due"] = None if args.due == "none" else due_time(args.due, now)
        needs, waits = found.needs, found.waits
        if args.depends_on is not None:
            needs = await checked_needs(self._store, row.thread, args.depends_on, row.id)
            rows = await self._store.rows_of(needs)
            waits = [id for id in needs if rows[id].state in ("open", "claimed")]
        row = row._replace(**given, version=row.version + 1, changed_at=now)
        by = call.participant
        changed = repository.changed(row, by, "updated", args.note, needs)
        return self._commit(TaskRecord(row, needs, waits), changed, "updated", by)

    @operation(permission="write", output=Task)
    async def claim_task(self, call: Calling, args: ClaimTask) -> Commit:
        """Claim a task that you will do: it is yours until you finish or release it. If somebody
        else was faster you are told who."""
        return await self._step(call, args.task, TaskStep("claim", call.participant))

    @operation(permission="write", output=Task)
    async def release_task(self, call: Calling, args: ReleaseTask) -> Commit:
        """Give back a task that you hold: others may claim it."""
        return await self._step(call, args.task, TaskStep("release", call.participant), args.note)

    @operation(permission="write", output=Task)
    async def finish_task(self, call: Calling, args: FinishTask) -> Commit:
        """Mark a task as done, with its result."""
        return await self._step(
            call, args.task, TaskStep("finish", call.participant, result=args.result)
        )

    @operation(permission="write", output=Task)
    async def cancel_task(self, call: Calling, args: CancelTask) -> Commit:
        """Cancel a task that nobody needs to do any more."""
        return await self._step(call, args.task, TaskStep("cancel", call.participant), args.note)

    @operation(permission="write", output=Task)
    async def reopen_task(self, call: Calling, args: ReopenTask) -> Commit:
        """Open a task again that was done or cancelled: others may claim it."""
        return await self._step(call, args.task, TaskStep("reopen", call.participant), args.note)

    @operation(permission="write", output=Task)
    async def assign_task(self, call: Calling, args: AssignTask) -> Commit:
        """Give a task to somebody who is to do it. Tell them with a message: only what a person
        assigns to an agent wakes it by itself."""
        step = TaskStep("assign", call.participant, to=args.to)
        return await self._step(call, args.task, step, args.note)

    async def _step(self, call: Calling, task: str, step: TaskStep, note: str = "") -> Commit:
        found = await self._find(call, task)
        step = step._replace(owner=call.owner)
        return await self._queues.in_turn(
            found.row.thread, lambda: self._stepped(call, task, step, note)
        )

    async def _stepped(self, call: Calling, task: str, step: TaskStep, note: str) -> Commit:
        found, now = await self._find(call, task), self.host.now()
        mine = found.row.owner == step.by and found.state == "claimed"
        if step.action == "claim" and mine:
            return Commit((), found.to_schema(now))
        if step.to is not None:
            self._check_reader(step.to, found.row.thread)
        waits = (await self._store.rows_of(found.waits)).values()
        row = stepped(found, step, now, waits)
        word = ACTIONS[step.action].word
        note = f"{step.to}{f': {note}' if note else ''}" if step.to is not None else note
        statements = repository.changed(row, step.by, word, note)
        commit = self._commit(TaskRecord(row, found.needs, found.waits), statements, word, step.by)
        if step.to is not None:
            self._tell_owner(call, row, commit)
        return commit
