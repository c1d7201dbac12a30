"""Inputs and outputs of the mod `tasks`, and the state machine of a task. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from hubbub.errors import OperationError
from hubbub.mods.fields import At, Limit, Line, ListInput, Moment, Texts, id_pattern, time_of
from hubbub.mods.operation import conflict, forbidden
from hubbub.protocol.messages import Model, ThreadRef
from hubbub.protocol.operations import Input, Untrusted

__all__ = ["ACTIONS", "TaskStep", "apply_step", "changed_task", "check_not_request"]


State = Literal["open", "claimed", "blocked", "done", "cancelled"]
"""As shown in answers. Tables do not store `blocked`, which is derived from other tasks."""

BoardId = Annotated[str, Field(pattern=id_pattern("b"))]
TaskId = Annotated[str, Field(pattern=id_pattern("t"))]
Title = Annotated[str, Field(max_length=200, pattern=Line)]
Body = Annotated[str, Field(max_length=10_000)]
Note = Annotated[str, Field(max_length=500)]
Name = Annotated[str, Field(min_length=1, max_length=64)]
Label = Annotated[str, Field(max_length=32, pattern=Line)]
Labels = Annotated[tuple[Label, ...], Field(max_length=10, fail_fast=True)]
Dependencies = Annotated[tuple[TaskId, ...], Field(max_length=20, fail_fast=True)]
Priority = Literal["low", "normal", "high", "urgent"]
Version = Annotated[int, Field(ge=1, le=2**31)]


# Inputs -----------------------------------------------------------------------------------------


class CreateBoard(Input):
    thread: ThreadRef
    """Participants who read this thread can see the board and work on it."""
    name: Annotated[str, Field(max_length=64, pattern=Line)]
    """The name, which distinguishes it from the other boards of the thread."""


class ListBoards(ListInput):
    before: BoardId | None = None


class BoardOf(Input):
    board: BoardId
    """The board."""


class WriteTask(Input):
    untrusted: Untrusted = False
    """Whether it carries content from outside the network."""


class CreateTask(WriteTask):
    title: Title
    """The work to be done, in one line."""
    thread: ThreadRef | None = None
    """The thread on whose default board to put it. Give this or `board`."""
    board: BoardId | None = None
    """The board to put it on."""
    description: Body = ""
    """Everything needed to do the task, in Markdown."""
    owner: Name | None = None
    """The participant who should do it. Default: the one who claims it."""
    due: Moment | None = None
    """When it should be done."""
    depends_on: Dependencies = ()
    """Tasks of the same thread that must be done or cancelled before it can be claimed."""
    priority: Priority = "normal"
    """The priority."""
    labels: Labels = ()
    """Labels for filtering and search."""


class TaskOf(Input):
    task: TaskId
    """The task."""


class ChangeTask(TaskOf, WriteTask):
    note: Note = ""
    """The reason, the progress or the remaining work, for the next participant."""


class UpdateTask(ChangeTask):
    version: Version | None = None
    """The version that you read. If the task has changed since, the update is refused. Default:
    the current version."""
    title: Title | None = None
    """New title."""
    description: Body | None = None
    """New description."""
    due: Moment | Literal["none"] | None = None
    """New due time, or "none" to remove it."""
    priority: Priority | None = None
    """New priority."""
    labels: Labels | None = None
    """New labels, replacing all existing ones."""
    depends_on: Dependencies | None = None
    """New dependencies, replacing all existing ones."""


class FinishTask(TaskOf, WriteTask):
    result: Body = ""
    """The result, or where to find it."""


class AssignTask(ChangeTask):
    to: Name
    """The participant who should do it. Must read the thread."""


class ReadTask(TaskOf):
    before: Version | None = None
    """Only changes before this version."""
    limit: Limit = 50
    """Maximum number of changes."""


class ListTasks(ListInput):
    board: BoardId | None = None
    """Only tasks on this board."""
    state: State | None = None
    """Only tasks in this state."""
    owner: Name | None = None
    """Only tasks that this participant holds."""
    ready: bool = False
    """Only tasks that can be claimed now: unassigned, with no unfinished dependencies."""
    before: TaskId | None = None


# Outputs ----------------------------------------------------------------------------------------


class Board(Model):
    id: str
    name: str
    """Empty for the thread's default board, which is created with its first task."""
    thread_id: str
    created_by: str
    created_at: At
    active: int = 0
    """Number of tasks that are not done or cancelled."""
    over: int = 0
    """Number of tasks that are done or cancelled."""


class Boards(Model):
    boards: tuple[Board, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones. To get them, call again with `before`."""


class Task(Model):
    id: str
    title: str
    board: str
    thread_id: str
    state: State
    """blocked: it waits for the tasks in `waits_for`, whether or not it has an owner."""
    owner: str | None = None
    """The participant who is doing it or did it."""
    priority: Priority
    labels: Texts
    due: At | None = None
    overdue: bool = False
    """Whether `due` has passed and the task is not done or cancelled."""
    depends_on: Texts = ()
    waits_for: Texts = ()
    """The tasks of `depends_on` that are not done or cancelled."""
    request: str | None = None
    """The request (m42) that it represents. It changes only together with the request."""
    created_by: str
    created_at: At
    changed_at: At
    version: int = 1
    """Incremented on each change."""
    untrusted: bool = False
    """Whether it was created or changed with content from outside the network."""

    @property
    def name(self) -> str:
        """As shown in messages to people and models."""
        return f'{self.id} "{self.title}"'

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "cancelled")


class Tasks(Model):
    tasks: tuple[Task, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones. To get them, call again with `before`."""
    untrusted: bool = False
    """Whether one of them is."""


class TaskChange(Model):
    version: int
    """The version after the change."""
    at: At
    by: str
    """`hub` if the owner was away for too long or a request ended."""
    what: str
    """One of created, updated, claimed, assigned, released, finished, cancelled, reopened."""
    note: str


class TaskDetails(Model):
    task: Task
    description: str
    result: str
    history: tuple[TaskChange, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier changes. To get them, call again with `before`."""
    untrusted: bool = False
    """As in `task`."""


class BoardText(Model):
    board: Board
    text: str
    """Markdown."""
    cut: bool
    """Whether some tasks are not shown."""
    untrusted: bool = False
    """Whether one of the tasks shown is."""


Action = Literal["claim", "assign", "release", "finish", "cancel", "reopen"]


class Transition(NamedTuple):
    """The rule for one action. While a task is held, only its holder, its creator and owners of the
    network can take actions on it."""

    comes_from: frozenset[State]
    leads_to: State
    word: str
    """Past tense, for the history and signals."""


def _active(*others: State) -> frozenset[State]:
    return frozenset({"claimed", "blocked", *others})


ACTIONS: Mapping[Action, Transition] = {
    "claim": Transition(frozenset({"open"}), "claimed", "claimed"),
    "assign": Transition(_active("open"), "claimed", "assigned"),
    "release": Transition(_active(), "open", "released"),
    "finish": Transition(frozenset({"open", "claimed"}), "done", "finished"),
    "cancel": Transition(_active("open"), "cancelled", "cancelled"),
    "reopen": Transition(frozenset({"done", "cancelled"}), "open", "reopened"),
}
READY = "list_tasks with ready=true shows the tasks that can be claimed"


class TaskStep(NamedTuple):
    """An action that a participant requests on a task."""

    action: Action
    by: str
    owner: bool = False
    """Whether the participant is an owner of the network."""
    to: str | None = None
    """For `assign`: the new owner of the task."""
    untrusted: bool = False
    """Whether its note or result carries content from outside the network."""


def changed_task(task: Task, now: float, **changes: object) -> Task:
    """The next version of the task, with `overdue` and `state` derived from the changes."""
    stamps = {"version": task.version + 1, "changed_at": time_of(now)}
    changed = task.model_copy(update={**stamps, **changes})
    overdue = changed.due is not None and changed.due.timestamp() <= now
    if changed.is_over:
        return changed.model_copy(update={"overdue": False})
    state = "blocked" if changed.waits_for else "claimed" if changed.owner else "open"
    return changed.model_copy(update={"overdue": overdue, "state": state})


def apply_step(task: Task, step: TaskStep, now: float, waits: Iterable[Task] = ()) -> Task:
    """The task after the step. `waits` are the tasks that it waits for.

    Raises `OperationError`: `conflict` if the task's state does not allow the step, `forbidden`.
    """
    rule, holder = ACTIONS[step.action], None if task.is_over else task.owner
    check_not_request(task)
    idle = step.action == "release" and holder is None
    if task.state not in rule.comes_from or idle:
        raise refusal(task, step.action, waits)
    if holder is not None and not (step.owner or step.by in (holder, task.created_by)):
        raise forbidden(
            f"{task.name} is held by {holder}; only {holder}, its creator {task.created_by} "
            f"and owners can {step.action} it",
            **_details(task),
        )
    owner = {
        "claim": step.by,
        "assign": step.to,
        "finish": task.owner or step.by,
        "cancel": task.owner,
    }.get(step.action)
    untrusted = task.untrusted or step.untrusted
    return changed_task(task, now, state=rule.leads_to, owner=owner, untrusted=untrusted)


def check_not_request(task: Task) -> None:
    """Raises `OperationError` for a task that represents a request."""
    if task.request is not None:
        raise conflict(
            f"{task.name} represents the request {task.request} and ends with it: by "
            f"{task.owner}'s report, its deadline or a stop",
            task=task.id,
            request=task.request,
        )


def refusal(task: Task, action: Action, waits: Iterable[Task] = ()) -> OperationError:
    """The error for an action that the task's state does not allow: the reason and the remedy."""
    if task.is_over:
        by = f" by {task.owner}" if task.owner and task.state == "done" else ""
        why = f"is {task.state}{by}; use reopen_task to open it again"
    elif action == "reopen":
        why = f"cannot be reopened because it is {task.state}"
    elif action == "release" and task.owner is None:
        why = f"is not held by anyone; {READY}"
    elif task.state == "blocked":
        blockers = ", ".join(
            f"{each.name} ({f'held by {each.owner}' if each.owner else 'open'})" for each in waits
        )
        why = f"waits for {blockers}, which must be done or cancelled first; {READY}"
    else:
        why = f"is held by {task.owner}; {READY}"
    return conflict(f"{task.name} {why}", **_details(task))


def _details(task: Task) -> dict[str, object]:
    details: dict[str, object] = {"task": task.id, "state": task.state}
    if task.owner is not None and not task.is_over:
        details["held_by"] = task.owner
    if task.waits_for and not task.is_over:
        details["waits_for"] = list(task.waits_for)
    return details
