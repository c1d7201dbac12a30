"""What the mod `tasks` tells: boards, tasks, and a board as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.errors import OperationError
from hubbub.mods.api import Mod
from hubbub.mods.digesting import News
from hubbub.mods.ids import BEYOND, number_before, number_of
from hubbub.mods.operation import Calling, operation
from hubbub.mods.tasks.markdown import PARTS, as_markdown
from hubbub.mods.tasks.news import news_of
from hubbub.mods.tasks.rows import BoardRow, Found
from hubbub.mods.tasks.settings import TasksConfig
from hubbub.mods.tasks.shelf import Filter, Shelf
from hubbub.mods.tasks.states import State
from hubbub.mods.tasks.words import (
    BoardAsMarkdown,
    Boards,
    BoardText,
    ListBoards,
    ListTasks,
    ReadTask,
    Task,
    TaskDetails,
    Tasks,
)
from hubbub.protocol.codes import ErrorCode

__all__ = ["TaskReader"]


class TaskReader(Mod):
    """The part of the mod that changes nothing."""

    config: TasksConfig
    _shelf: Shelf

    def _threads(self, call: Calling, thread: str | None) -> Sequence[str]:
        if thread is not None:
            return [self.host.thread(call, thread)]
        return list(self.host.threads_of(call.participant))

    async def _board(self, call: Calling, id: str) -> BoardRow:
        """The board, if the caller reads its thread. Raises `OperationError`."""
        row = await self._shelf.board(number_of(id))
        if row is not None and self.host.reads(call.participant, row.thread):
            return row
        raise OperationError(
            ErrorCode.NOT_FOUND, f"there is no board {id} for you; see list_boards"
        )

    async def _find(self, call: Calling, id: str) -> Found:
        """The task, if the caller reads its thread. Raises `OperationError`."""
        found = await self._shelf.task(number_of(id))
        if found is not None and self.host.reads(call.participant, found.row.thread):
            return found
        raise OperationError(ErrorCode.NOT_FOUND, f"there is no task {id} for you; see list_tasks")

    async def news(self, call: Calling, after: float, limit: int) -> Sequence[News]:
        """`Newsworthy.news`."""
        threads = self._threads(call, None)
        return await news_of(self._shelf, threads, call.participant, after, limit)

    @operation()
    async def list_boards(self, call: Calling, args: ListBoards) -> Boards:
        """List the task boards that you may read."""
        before = number_before(args.before)
        threads = self._threads(call, args.thread)
        rows = await self._shelf.boards(threads, before, args.limit + 1)
        told = await self._shelf.counted(rows[: args.limit])
        return Boards(boards=tuple(told), more=len(rows) > args.limit)

    @operation()
    async def list_tasks(self, call: Calling, args: ListTasks) -> Tasks:
        """List tasks of your boards: those of one board, thread, state or owner, or with `ready`
        those that can be claimed now."""
        threads, board = self._threads(call, args.thread), None
        if args.board is not None:
            row = await self._board(call, args.board)
            board, threads = row.id, [each for each in threads if each == row.thread]
        if args.ready and args.state not in (None, "open"):
            raise OperationError(ErrorCode.BAD_REQUEST, "ready: only open tasks are ready")
        which = Filter(board, "open" if args.ready else args.state, args.owner)
        before = number_before(args.before)
        found = await self._shelf.tasks(threads, which, before, args.limit + 1)
        now = self.host.now()
        told = tuple(each.told(now) for each in found[: args.limit])
        return Tasks(tasks=told, more=len(found) > args.limit)

    @operation()
    async def read_task(self, call: Calling, args: ReadTask) -> TaskDetails:
        """Read a task: its description, its result, and who has done what with it."""
        found = await self._find(call, args.task)
        row = found.row
        history = await self._shelf.history(row.id, args.before or BEYOND, args.limit + 1)
        return TaskDetails(
            task=found.told(self.host.now()),
            description=row.description,
            result=row.result,
            history=tuple(history[: args.limit]),
            more=len(history) > args.limit,
        )

    @operation()
    async def board_as_markdown(self, call: Calling, args: BoardAsMarkdown) -> BoardText:
        """Read a whole task board as Markdown."""
        row = await self._board(call, args.board)
        (board,) = await self._shelf.counted([row])
        now, parts, more = self.host.now(), dict[State, Sequence[Task]](), list[State]()
        for state, (_, most) in PARTS.items():
            which = Filter(row.id, state)
            found = await self._shelf.tasks([row.thread], which, BEYOND, most + 1)
            parts[state] = [each.told(now) for each in found[:most]]
            more += [state] if len(found) > most else []
        return BoardText(board=board, text=as_markdown(board, parts, more), cut=bool(more))
