"""Boards and tasks as the tables of the mod `tasks` have them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hubbub.mods.tasks.states import OVER, Stage, State
from hubbub.mods.tasks.words import Board, Priority, Task
from hubbub.mods.times import time_of

__all__ = ["BoardRow", "Found", "TaskRow"]


class BoardRow(NamedTuple):
    id: int
    thread: str
    name: str
    created_by: str
    created_at: float

    def told(self, active: int = 0, over: int = 0) -> Board:
        return Board(
            id=f"b{self.id}",
            name=self.name,
            thread_id=self.thread,
            created_by=self.created_by,
            created_at=time_of(self.created_at),
            active=active,
            over=over,
        )


class TaskRow(NamedTuple):
    """A task without what follows from others."""

    id: int
    board: int
    thread: str
    title: str
    description: str
    state: Stage
    owner: str | None
    priority: Priority
    labels: str
    """As a JSON list."""
    due: float | None
    result: str
    created_by: str
    created_at: float
    changed_at: float
    version: int
    request: str | None

    @property
    def name(self) -> str:
        """As people and models are told of it."""
        return f't{self.id} "{self.title}"'


@dataclass(frozen=True, slots=True)
class Found:
    """A task with its dependencies."""

    row: TaskRow
    needs: Sequence[int] = ()
    waits: Sequence[int] = ()
    """Those of them that are not over."""

    @property
    def state(self) -> State:
        row = self.row
        return "blocked" if self.waits and row.state not in OVER else row.state

    def told(self, now: float) -> Task:
        row = self.row
        labels: list[str] = json.loads(row.labels)
        return Task(
            id=f"t{row.id}",
            title=row.title,
            board=f"b{row.board}",
            thread_id=row.thread,
            state=self.state,
            owner=row.owner,
            priority=row.priority,
            labels=tuple(labels),
            due=time_of(row.due),
            overdue=row.due is not None and row.due <= now and row.state not in OVER,
            depends_on=tuple(f"t{id}" for id in self.needs),
            waits_for=tuple(f"t{id}" for id in self.waits),
            request=row.request,
            created_by=row.created_by,
            created_at=time_of(row.created_at),
            changed_at=time_of(row.changed_at),
            version=row.version,
        )
