"""How the mod `tasks` makes boards and tasks, and how whatever changes is kept and told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from pydantic import AwareDatetime, JsonValue

from hubbub.errors import OperationError
from hubbub.mods.ids import BEYOND
from hubbub.mods.operation import Calling, operation
from hubbub.mods.queues import Queues
from hubbub.mods.rows import Keeping, Statement
from hubbub.mods.tasks import writing
from hubbub.mods.tasks.duties import Duties
from hubbub.mods.tasks.needs import checked_needs
from hubbub.mods.tasks.reading import TaskReader
from hubbub.mods.tasks.rows import BoardRow, Found, TaskRow
from hubbub.mods.tasks.settings import TasksConfig
from hubbub.mods.tasks.words import Board, CreateBoard, CreateTask, Task
from hubbub.protocol.codes import ErrorCode

__all__ = ["TaskMaker", "due_time"]


class TaskMaker(TaskReader):
    """The part of the mod that makes what there was not."""

    def __init__(self, config: TasksConfig):
        super().__init__(config)
        self._queues = Queues()
        """One change at a time in each thread: of two who claim one task, or whose dependencies
        would together make a circle, the second sees what the first has done."""
        self._duties: Duties
        self._boards: dict[str, BoardRow] = {}
        """The boards without a name, by thread."""
        self._last = self._last_board = 0

    # Making -----------------------------------------------------------------------------------

    @operation(permission="write", output=Board)
    async def create_board(self, call: Calling, args: CreateBoard) -> Keeping:
        """Create a task board besides the one that each thread has of its own."""
        thread = self.host.thread(call, args.thread)
        return await self._queues.in_turn(
            thread, lambda: self._create_board(call, thread, args.name)
        )

    async def _create_board(self, call: Calling, thread: str, name: str) -> Keeping:
        most = self.config.max_boards
        there = await self._shelf.boards([thread], BEYOND, most)
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
        return Keeping([writing.board_made(row)], row.told(), kept=kept)

    def _own_board(self, thread: str, by: str, at: float) -> BoardRow:
        """The thread's board without a name; whoever writes on it writes it, too, if need be."""
        if thread not in self._boards:
            self._last_board += 1
            self._boards[thread] = BoardRow(self._last_board, thread, "", by, at)
        return self._boards[thread]

    @operation(permission="write", output=Task)
    async def create_task(self, call: Calling, args: CreateTask) -> Keeping:
        """Create a task on the board of a thread, for whoever claims it or for somebody."""
        if (args.board is None) == (args.thread is None):
            raise OperationError(ErrorCode.BAD_REQUEST, "name either a thread or a board")
        if args.board is not None:
            board = await self._board(call, args.board)
        else:
            thread = self.host.thread(call, args.thread or "")
            board = self._own_board(thread, call.participant, self.host.now())
        return await self._queues.in_turn(board.thread, lambda: self._create(call, board, args))

    async def _create(self, call: Calling, board: BoardRow, args: CreateTask) -> Keeping:
        most, now = self.config.max_active, self.host.now()
        if await self._shelf.active(board.id) >= most:
            text = f"b{board.id} has {most} tasks that are not over; finish or cancel some"
            raise OperationError(ErrorCode.LIMIT, text)
        if args.owner is not None:
            self._check_reader(args.owner, board.thread)
        needs = await checked_needs(self._shelf, board.thread, args.depends_on)
        rows = await self._shelf.rows_of(needs)
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
        found = Found(row, needs, sorted(waits))
        there = [writing.board_there(board)] if not board.name else []
        statements = [*there, *writing.created(row, needs)]
        keeping = self._keeping(found, statements, "created", call.participant)
        self._tell_owner(call, row, keeping)
        return keeping

    def _check_reader(self, owner: str, thread: str) -> None:
        if not self.host.reads(owner, thread):
            text = f"{owner} does not read this thread, and would not see the task"
            raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)

    def _tell_owner(self, call: Calling, row: TaskRow, keeping: Keeping) -> None:
        """An agent is woken by what a person gives it: in that person's name, like a message. What
        agents give each other wakes nobody, or two of them could go on for ever."""
        if row.owner and call.kind == "human" and self.host.kind_of(row.owner) == "agent":
            text = f"@{row.owner}, please do {row.name}."
            keeping.says = [self.host.draft(call, row.thread, text, mentions=(row.owner,))]

    # Keeping ----------------------------------------------------------------------------------

    def _keeping(
        self, found: Found, statements: Sequence[Statement], what: str, by: str
    ) -> Keeping:
        kept = partial(self._changed, found, what, by)
        return Keeping(statements, found.told(self.host.now()), kept=kept)

    def _changed(self, found: Found, what: str, by: str) -> None:
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


def due_time(due: AwareDatetime | None, now: float) -> float | None:
    """Raises `OperationError` for a time that has passed."""
    if due is None:
        return None
    if due.timestamp() <= now:
        raise OperationError(ErrorCode.BAD_REQUEST, f"due: {due:%Y-%m-%d %H:%M %Z} has passed")
    return due.timestamp()
