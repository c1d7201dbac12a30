"""What the mod `tasks` does by itself: tells of what is overdue, and releases what an agent holds
that has been away for long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.mods.fields import seconds_of
from hubbub.mods.host import Alarm, Host
from hubbub.mods.repository import KeyedQueues
from hubbub.mods.tasks import repository
from hubbub.mods.tasks.repository import TaskRepository
from hubbub.mods.tasks.schemas import Task
from hubbub.mods.tasks.states import changed_task
from hubbub.wording import shortened

__all__ = ["Duties"]

AGAIN_S = 60.0
"""Seconds until what could not be done, because the disk refused it, is tried again."""
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
                await self._host.keep(repository.overdue_announced(task))
            more = len(tasks) == AT_ONCE
            self._due.at(now if more else await self._store.next_due(now))
        except StoreUnavailable:
            self._due.at(now + AGAIN_S)
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
            self._host.at(self._host.now() + AGAIN_S, _AWAY + holder)
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
            await self._host.keep(repository.changed(task, "hub", "released", note))
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
