"""The states of a task, and what leads from one to the other: one table.

            claim      finish
    open ---------> claimed --------> done
      ^               |                 |
      |    release    |    cancel       |  reopen
      +---------------+---------> cancelled ----> open

A task that has nobody, or somebody, and waits for others that are not over is told as `blocked`:
that is no step of its own, it follows from its dependencies and ends with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hubbub.errors import OperationError
from hubbub.mods.fields import time_of
from hubbub.mods.tasks.schemas import Board, Priority, Stage, State, Task
from hubbub.protocol.codes import ErrorCode

__all__ = [
    "ACTIONS",
    "OVER",
    "BoardRow",
    "TaskRecord",
    "TaskRow",
    "TaskStep",
    "check_free",
    "stepped",
]

Action = Literal["claim", "assign", "release", "finish", "cancel", "reopen"]
Whose = Literal["anybody", "holder"]

OVER: frozenset[str] = frozenset({"done", "cancelled"})


class Transition(NamedTuple):
    """What one action needs and makes."""

    comes_from: frozenset[State]
    leads_to: Stage
    who: Whose
    """Who may do it while somebody holds the task: anybody who reads it, or only the holder, who
    created it, and owners. While nobody holds it, anybody."""
    word: str
    """What has happened then, for the history and signals."""


ACTIONS: Mapping[Action, Transition] = {
    "claim": Transition(frozenset({"open"}), "claimed", "holder", "claimed"),
    "assign": Transition(
        frozenset({"open", "claimed", "blocked"}), "claimed", "holder", "assigned"
    ),
    "release": Transition(frozenset({"claimed", "blocked"}), "open", "holder", "released"),
    "finish": Transition(frozenset({"open", "claimed"}), "done", "holder", "finished"),
    "cancel": Transition(
        frozenset({"open", "claimed", "blocked"}), "cancelled", "holder", "cancelled"
    ),
    "reopen": Transition(frozenset({"done", "cancelled"}), "open", "anybody", "reopened"),
}


class BoardRow(NamedTuple):
    id: int
    thread: str
    name: str
    created_by: str
    created_at: float

    def to_schema(self, active: int = 0, over: int = 0) -> Board:
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
class TaskRecord:
    """A task with its dependencies."""

    row: TaskRow
    needs: Sequence[int] = ()
    waits: Sequence[int] = ()
    """Those of them that are not over."""

    @property
    def thread(self) -> str:
        return self.row.thread

    @property
    def state(self) -> State:
        row = self.row
        return "blocked" if self.waits and row.state not in OVER else row.state

    def to_schema(self, now: float) -> Task:
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


READY = "list_tasks with ready=true shows what can be claimed"


class TaskStep(NamedTuple):
    """What somebody wants to do with a task."""

    action: Action
    by: str
    owner: bool = False
    """Whether that is an owner of the network."""
    to: str | None = None
    """For `assign`: who is to do it."""
    result: str = ""
    """For `finish`."""


def stepped(
    found: TaskRecord, step: TaskStep, now: float, waits: Iterable[TaskRow] = ()
) -> TaskRow:
    """The task after the step, as its next version. `waits` are those that it waits for.

    Raises `OperationError`: `conflict` where its state does not allow it, `forbidden`.
    """
    row, rule = found.row, ACTIONS[step.action]
    check_free(row)
    idle = step.action == "release" and row.owner is None
    if found.state not in rule.comes_from or idle:
        raise refusal(found, step.action, waits)
    held = row.owner is not None and row.state not in OVER
    trusted = step.owner or step.by in (row.owner, row.created_by)
    if held and rule.who == "holder" and not trusted:
        raise OperationError(
            ErrorCode.FORBIDDEN,
            f"{row.name} is held by {row.owner}: only {row.owner}, {row.created_by}, who created "
            f"it, and owners may {step.action} it",
            details=_details(found),
        )
    owner = {
        "claim": step.by,
        "assign": step.to,
        "release": None,
        "finish": row.owner or step.by,
        "cancel": row.owner,
        "reopen": None,
    }[step.action]
    result = {"finish": step.result, "reopen": ""}.get(step.action, row.result)
    return row._replace(
        state=rule.leads_to, owner=owner, result=result, version=row.version + 1, changed_at=now
    )


def check_free(row: TaskRow) -> None:
    """Raises `OperationError` for a task that stands for a request."""
    if row.request is not None:
        raise OperationError(
            ErrorCode.CONFLICT,
            f"{row.name} stands for the request {row.request} and ends with it: by {row.owner}'s "
            "report, its deadline or a stop",
            details={"task": f"t{row.id}", "request": row.request},
        )


def refusal(found: TaskRecord, action: Action, waits: Iterable[TaskRow] = ()) -> OperationError:
    """The task's state does not allow the action: why, and what to do."""
    row = found.row
    if row.state in OVER:
        by = f" by {row.owner}" if row.owner and row.state == "done" else ""
        why = f"is {row.state}{by}; reopen_task opens it again"
    elif action == "reopen":
        why = f"is not over, it is {found.state}"
    elif action == "release" and row.owner is None:
        why = f"is held by nobody; {READY}"
    elif found.state == "blocked":
        whose = ", ".join(
            f"{each.name} ({f'held by {each.owner}' if each.owner else 'open'})" for each in waits
        )
        why = f"waits for {whose}: that must be over first; {READY}"
    else:
        why = f"is held by {row.owner}; {READY}"
    return OperationError(ErrorCode.CONFLICT, f"{row.name} {why}", details=_details(found))


def _details(found: TaskRecord) -> dict[str, object]:
    row = found.row
    details: dict[str, object] = {"task": f"t{row.id}", "state": found.state}
    if row.owner is not None and row.state not in OVER:
        details["held_by"] = row.owner
    if found.waits and row.state not in OVER:
        details["waits_for"] = [f"t{id}" for id in found.waits]
    return details
