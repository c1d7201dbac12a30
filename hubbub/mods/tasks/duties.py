"""What the mod `tasks` does by itself: tells of what is overdue, and releases what an agent holds
that has been away for long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from hubbub.errors import StoreUnavailable
from hubbub.mods.host import Alarm, Host
from hubbub.mods.queues import KeyedQueues
from hubbub.mods.rows import Statement
from hubbub.mods.tasks import repository
from hubbub.mods.tasks.repository import TaskRepository
from hubbub.mods.tasks.states import OVER, TaskRecord, TaskRow
from hubbub.protocol.messages import Message

__all__ = ["Duties"]

AGAIN_S = 60.0
"""Seconds until what could not be told, because the disk refused it, is told again."""
MOST_TRIES = 12
"""How often it is tried to be told again that a task is overdue; a mod may refuse it each time."""
AT_ONCE = 200
"""Tasks that are looked at in one go."""
SHORT = 200
"""Characters of a result that a message has."""
_AWAY = "away:"


class Duties:
    """`changed(task, what, by)` tells those who read the thread."""

    def __init__(
        self,
        host: Host,
        store: TaskRepository,
        queues: KeyedQueues,
        changed: Callable[[TaskRecord, str, str], None],
    ):
        self._host, self._store, self._queues, self._changed = host, store, queues, changed
        self._due = Alarm(host, "due")
        self._tries = Counter[tuple[int, float | None]]()
        """How often it was tried to tell of a task that was due then."""

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

    def due_at(self, row: TaskRow) -> None:
        """The task has changed: look at it when it is due."""
        if row.due is not None and row.state not in OVER and row.request is None:
            self._due.at(row.due)

    async def _tell_overdue(self) -> None:
        now = self._host.now()
        try:
            rows = await self._store.overdue(now, AT_ONCE)
            following = await self._store.next_due(now)
        except StoreUnavailable:
            self._due.at(now + AGAIN_S)
            raise
        tries = {place: self._tries[place] + 1 for place in ((row.id, row.due) for row in rows)}
        self._tries = Counter(tries)
        for row in rows:
            if self._tries[row.id, row.due] > MOST_TRIES + 1 and row.due is not None:
                await self._host.keep([repository.overdue_announced(row.id, row.due)])
                continue
            self._host.notice(
                row.thread,
                f"{row.name} is overdue{f' ({row.owner} has it)' if row.owner else ''}.",
                {"task": f"t{row.id}", "overdue": row.due},
                once=f"overdue:t{row.id}:{row.due}",
                to=(row.owner or row.created_by,),
            )
        self._due.at(now + AGAIN_S if rows else following)

    def announced(self, message: Message) -> Sequence[Statement]:
        """Of a message of the hub: that the thread was told, if it says that a task is overdue."""
        content = message.content
        if isinstance(content, dict) and content.get("mod") == "tasks":
            task, due = content.get("task"), content.get("overdue")
            if isinstance(task, str) and isinstance(due, int | float):
                return [repository.overdue_announced(int(task[1:]), due)]
        return ()

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
                rows = await self._store.held_by(holder, AT_ONCE)
                for row in rows:
                    await self._release(row.id, row.thread, holder)
                if len(rows) < AT_ONCE:
                    return
        except StoreUnavailable:
            self._host.at(self._host.now() + AGAIN_S, _AWAY + holder)
            raise

    def _is_here(self, holder: str) -> bool:
        known = self._host.participant(holder)
        return known is not None and known.present

    async def _release(self, task: int, thread: str, holder: str) -> None:
        await self._queues.enter(thread)
        try:
            found = await self._store.task(task)
            if found is None or found.row.owner != holder or found.row.state != "claimed":
                return
            row = found.row._replace(
                state="open",
                owner=None,
                version=found.row.version + 1,
                changed_at=self._host.now(),
            )
            note = f"{holder} is away"
            await self._host.keep(repository.changed(row, "hub", "released", note))
        finally:
            self._queues.leave(thread)
        self._changed(TaskRecord(row, found.needs, found.waits), "released", "hub")
        self._host.notice(
            thread,
            f"{row.name} is released: {holder}, who held it, is away.",
            {"task": f"t{task}", "released": holder},
            once=f"released:t{task}:{row.version}",
            to=(row.created_by,),
        )

    # What is done -----------------------------------------------------------------------------

    def announce(self, row: TaskRow, by: str) -> None:
        """The thread is told that a task is done."""
        result = " ".join(row.result.split())
        result = result if len(result) <= SHORT else f"{result[: SHORT - 3]}..."
        self._host.notice(
            row.thread,
            f"{by} has finished {row.name}{f': {result}' if result else '.'}",
            {"task": f"t{row.id}", "finished": by},
            once=f"finished:t{row.id}:{row.version}",
            to=(row.created_by,),
        )
