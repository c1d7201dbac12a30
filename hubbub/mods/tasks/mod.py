"""The mod `tasks`: boards with tasks that people and agents claim and finish.

mods:
  - tasks: {release_after: 30m}
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from hubbub.errors import OperationError
from hubbub.mods.ids import BEYOND
from hubbub.mods.operation import Calling, operation
from hubbub.mods.rows import Keeping, Statement
from hubbub.mods.tasks import delegated, writing
from hubbub.mods.tasks.duties import Duties
from hubbub.mods.tasks.making import TaskMaker, due_time
from hubbub.mods.tasks.needs import checked_needs
from hubbub.mods.tasks.rows import Found
from hubbub.mods.tasks.settings import TasksConfig
from hubbub.mods.tasks.shelf import Shelf
from hubbub.mods.tasks.states import ACTIONS
from hubbub.mods.tasks.steps import Step, check_free, stepped
from hubbub.mods.tasks.words import (
    AssignTask,
    CancelTask,
    ClaimTask,
    FinishTask,
    ReleaseTask,
    ReopenTask,
    Task,
    UpdateTask,
)
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message

__all__ = ["TasksMod"]


class TasksMod(TaskMaker):
    """Boards with tasks: who does what until when, and what must be done before.

    A board belongs to a thread: who reads the thread sees its tasks, creates, claims and finishes
    them. Of several who claim a task at once one gets it. Requests between agents (`delegate`) are
    tasks, too, on the board of their thread.
    """

    name = "tasks"
    Config = TasksConfig
    config: TasksConfig
    migrations = "tables"

    async def start(self) -> None:
        self._shelf = Shelf(self.host)
        self._duties = Duties(self.host, self._shelf, self._queues, self._changed)
        self._last_board, self._last = await self._shelf.last()
        self._boards = await self._shelf.own_boards()
        await self._duties.start(self.config.release_after)

    # What happens -----------------------------------------------------------------------------

    def on_stored(self, message: Message) -> Sequence[Statement]:
        mark = message.request
        if mark is None:
            said_here = message.sender_kind == "system" and not message.imported
            return self._duties.told(message) if said_here else ()
        self.host.spawn(self._tell_of_request(mark.id or message.id))
        if mark.kind != "task":
            return delegated.ended(message, mark)
        at = message.sent_at.timestamp()
        self._last += 1
        board = self._own_board(message.thread_id, message.sender_id, at)
        return delegated.asked(message, mark, board, self._last)

    async def _tell_of_request(self, request: str) -> None:
        await self.host.keep(())  # a commit after that of the message, which is under way
        found = await self._shelf.of_request(request)
        if found is not None:
            change = (await self._shelf.history(found.row.id, BEYOND, 1))[0]
            self._changed(found, change.what, change.by)

    def on_timer(self, key: str) -> None:
        self._duties.rung(key)

    def on_leave(self, participant: str) -> None:
        self._duties.left(participant, self.config.release_after)

    def on_join(self, participant: str) -> None:
        self._duties.came(participant)

    # Changing ---------------------------------------------------------------------------------

    @operation(permission="write", output=Task)
    async def update_task(self, call: Calling, args: UpdateTask) -> Keeping:
        """Change what a task says: title, description, due time, priority, labels, and what it
        depends on."""
        found = await self._find(call, args.task)
        return await self._queues.in_turn(found.row.thread, lambda: self._update(call, args))

    async def _update(self, call: Calling, args: UpdateTask) -> Keeping:
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
            needs = await checked_needs(self._shelf, row.thread, args.depends_on, row.id)
            rows = await self._shelf.rows_of(needs)
            waits = [id for id in needs if rows[id].state in ("open", "claimed")]
        row = row._replace(**given, version=row.version + 1, changed_at=now)
        by = call.participant
        changed = writing.changed(row, by, "updated", args.note, needs)
        return self._keeping(Found(row, needs, waits), changed, "updated", by)

    @operation(permission="write", output=Task)
    async def claim_task(self, call: Calling, args: ClaimTask) -> Keeping:
        """Claim a task that you will do: it is yours until you finish or release it. If somebody
        else was faster you are told who."""
        return await self._step(call, args.task, Step("claim", call.participant))

    @operation(permission="write", output=Task)
    async def release_task(self, call: Calling, args: ReleaseTask) -> Keeping:
        """Give back a task that you hold: others may claim it."""
        return await self._step(call, args.task, Step("release", call.participant), args.note)

    @operation(permission="write", output=Task)
    async def finish_task(self, call: Calling, args: FinishTask) -> Keeping:
        """Mark a task as done, with its result."""
        return await self._step(
            call, args.task, Step("finish", call.participant, result=args.result)
        )

    @operation(permission="write", output=Task)
    async def cancel_task(self, call: Calling, args: CancelTask) -> Keeping:
        """Cancel a task that nobody needs to do any more."""
        return await self._step(call, args.task, Step("cancel", call.participant), args.note)

    @operation(permission="write", output=Task)
    async def reopen_task(self, call: Calling, args: ReopenTask) -> Keeping:
        """Open a task again that was done or cancelled: others may claim it."""
        return await self._step(call, args.task, Step("reopen", call.participant), args.note)

    @operation(permission="write", output=Task)
    async def assign_task(self, call: Calling, args: AssignTask) -> Keeping:
        """Give a task to somebody who is to do it. Tell them with a message: only what a person
        assigns to an agent wakes it by itself."""
        step = Step("assign", call.participant, to=args.to)
        return await self._step(call, args.task, step, args.note)

    async def _step(self, call: Calling, task: str, step: Step, note: str = "") -> Keeping:
        found = await self._find(call, task)
        step = step._replace(owner=call.owner)
        return await self._queues.in_turn(
            found.row.thread, lambda: self._stepped(call, task, step, note)
        )

    async def _stepped(self, call: Calling, task: str, step: Step, note: str) -> Keeping:
        found, now = await self._find(call, task), self.host.now()
        mine = found.row.owner == step.by and found.state == "claimed"
        if step.action == "claim" and mine:
            return Keeping((), found.told(now))
        if step.to is not None:
            self._check_reader(step.to, found.row.thread)
        waits = (await self._shelf.rows_of(found.waits)).values()
        row = stepped(found, step, now, waits)
        word = ACTIONS[step.action].word
        note = f"{step.to}{f': {note}' if note else ''}" if step.to is not None else note
        statements = writing.changed(row, step.by, word, note)
        keeping = self._keeping(Found(row, found.needs, found.waits), statements, word, step.by)
        if step.to is not None:
            self._tell_owner(call, row, keeping)
        return keeping
