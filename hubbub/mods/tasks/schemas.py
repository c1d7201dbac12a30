"""Tasks, the inputs and outputs of their mod, and what leads from one state to another. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from hubbub.errors import OperationError
from hubbub.mods.fields import At, Limit, Line, ListInput, Moment, Texts, id_pattern, time_of
from hubbub.mods.operation import conflict, forbidden
from hubbub.protocol.messages import Model, ThreadRef
from hubbub.protocol.operations import Input

__all__ = ["ACTIONS", "TaskStep", "changed_task", "check_free", "stepped"]


State = Literal["open", "claimed", "blocked", "done", "cancelled"]
"""As it is told; tables have no `blocked`, which follows from other tasks."""

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


# What is asked ----------------------------------------------------------------------------------


class CreateBoard(Input):
    thread: ThreadRef
    """Who reads this thread sees the board and works on it."""
    name: Annotated[str, Field(max_length=64, pattern=Line)]
    """What it is called, besides the thread's other boards."""


class ListBoards(ListInput):
    before: BoardId | None = None


class BoardOf(Input):
    board: BoardId
    """The board."""


class CreateTask(Input):
    title: Title
    """What is to be done, in one line."""
    thread: ThreadRef | None = None
    """The thread to whose own board it goes. Name this or `board`."""
    board: BoardId | None = None
    """The board that it goes to."""
    description: Body = ""
    """All that is needed to do it; Markdown."""
    owner: Name | None = None
    """Who is to do it; left out: whoever claims it."""
    due: Moment | None = None
    """When it is to be done."""
    depends_on: Dependencies = ()
    """Tasks of the same thread that must be over before it can be claimed."""
    priority: Priority = "normal"
    """How urgent it is."""
    labels: Labels = ()
    """Words to find it by."""


class TaskOf(Input):
    task: TaskId
    """The task."""


class ChangeTask(TaskOf):
    note: Note = ""
    """Why, how far it is or what is left to do, for whoever takes it up."""


class UpdateTask(ChangeTask):
    version: Version | None = None
    """The version that you have read: if it has changed since, nothing is changed. Left out:
    whatever it is now."""
    title: Title | None = None
    """Another title."""
    description: Body | None = None
    """Another description."""
    due: Moment | Literal["none"] | None = None
    """Another time; "none" takes it away."""
    priority: Priority | None = None
    """Another priority."""
    labels: Labels | None = None
    """Other labels, in place of all that it has."""
    depends_on: Dependencies | None = None
    """Other dependencies, in place of all that it has."""


class FinishTask(TaskOf):
    result: Body = ""
    """Its result, or where to find it."""


class AssignTask(ChangeTask):
    to: Name
    """Who is to do it: somebody who reads the thread."""


class ReadTask(TaskOf):
    before: Version | None = None
    """Only changes that led to earlier versions than this."""
    limit: Limit = 50
    """How many changes at most."""


class ListTasks(ListInput):
    board: BoardId | None = None
    """Only those of this board."""
    state: State | None = None
    """Only those in this state."""
    owner: Name | None = None
    """Only those that this participant holds."""
    ready: bool = False
    """Only those that can be claimed now: nobody holds them, and they wait for nothing."""
    before: TaskId | None = None


# What is answered -------------------------------------------------------------------------------


class Board(Model):
    id: str
    name: str
    """Empty: the thread's own board, which is there with its first task."""
    thread_id: str
    created_by: str
    created_at: At
    active: int = 0
    """Tasks that are not over."""
    over: int = 0
    """Tasks that are done or cancelled."""


class Boards(Model):
    boards: tuple[Board, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones: ask again with `before`."""


class Task(Model):
    id: str
    title: str
    board: str
    thread_id: str
    state: State
    """blocked: it waits for tasks in `waits_for`, whoever holds it."""
    owner: str | None = None
    """Who does it, or has done it."""
    priority: Priority
    labels: Texts
    due: At | None = None
    overdue: bool = False
    """Whether `due` has passed and it is not over."""
    depends_on: Texts = ()
    waits_for: Texts = ()
    """Those of `depends_on` that are not over."""
    request: str | None = None
    """The request (m42) that it stands for: it changes only as that does."""
    created_by: str
    created_at: At
    changed_at: At
    version: int = 1
    """One more with each change."""

    @property
    def name(self) -> str:
        """As people and models are told of it."""
        return f'{self.id} "{self.title}"'

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "cancelled")


class Tasks(Model):
    tasks: tuple[Task, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones: ask again with `before`."""


class TaskChange(Model):
    version: int
    """The version that it led to."""
    at: At
    by: str
    """`hub`: the hub itself, because somebody was away for long, or a request has ended."""
    what: str
    """created, updated, claimed, assigned, released, finished, cancelled, reopened."""
    note: str


class TaskDetails(Model):
    task: Task
    description: str
    result: str
    history: tuple[TaskChange, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier changes: ask again with `before`."""


class BoardText(Model):
    board: Board
    text: str
    """Markdown."""
    cut: bool
    """Whether there are tasks that are not shown."""


Action = Literal["claim", "assign", "release", "finish", "cancel", "reopen"]


class Transition(NamedTuple):
    """What one action needs and makes. While somebody holds the task, only that one, who created
    it, and owners may do it."""

    comes_from: frozenset[State]
    leads_to: State
    word: str
    """What has happened then, for the history and signals."""


def _active(*besides: State) -> frozenset[State]:
    return frozenset({"claimed", "blocked", *besides})


ACTIONS: Mapping[Action, Transition] = {
    "claim": Transition(frozenset({"open"}), "claimed", "claimed"),
    "assign": Transition(_active("open"), "claimed", "assigned"),
    "release": Transition(_active(), "open", "released"),
    "finish": Transition(frozenset({"open", "claimed"}), "done", "finished"),
    "cancel": Transition(_active("open"), "cancelled", "cancelled"),
    "reopen": Transition(frozenset({"done", "cancelled"}), "open", "reopened"),
}
READY = "list_tasks with ready=true shows what can be claimed"


class TaskStep(NamedTuple):
    """What somebody wants to do with a task."""

    action: Action
    by: str
    owner: bool = False
    """Whether that is an owner of the network."""
    to: str | None = None
    """For `assign`: who is to do it."""


def changed_task(task: Task, now: float, **changes: object) -> Task:
    """Its next version, with what follows from the changes."""
    stamps = {"version": task.version + 1, "changed_at": time_of(now)}
    made = task.model_copy(update={**stamps, **changes})
    overdue = made.due is not None and made.due.timestamp() <= now
    if made.is_over:
        return made.model_copy(update={"overdue": False})
    state = "blocked" if made.waits_for else "claimed" if made.owner else "open"
    return made.model_copy(update={"overdue": overdue, "state": state})


def stepped(task: Task, step: TaskStep, now: float, waits: Iterable[Task] = ()) -> Task:
    """The task after the step. `waits` are those that it waits for.

    Raises `OperationError`: `conflict` where its state does not allow it, `forbidden`.
    """
    rule, holder = ACTIONS[step.action], None if task.is_over else task.owner
    check_free(task)
    idle = step.action == "release" and holder is None
    if task.state not in rule.comes_from or idle:
        raise refusal(task, step.action, waits)
    if holder is not None and not (step.owner or step.by in (holder, task.created_by)):
        raise forbidden(
            f"{task.name} is held by {holder}: only {holder}, {task.created_by}, who created "
            f"it, and owners may {step.action} it",
            **_details(task),
        )
    owner = {
        "claim": step.by,
        "assign": step.to,
        "finish": task.owner or step.by,
        "cancel": task.owner,
    }.get(step.action)
    return changed_task(task, now, state=rule.leads_to, owner=owner)


def check_free(task: Task) -> None:
    """Raises `OperationError` for a task that stands for a request."""
    if task.request is not None:
        raise conflict(
            f"{task.name} stands for the request {task.request} and ends with it: by "
            f"{task.owner}'s report, its deadline or a stop",
            task=task.id,
            request=task.request,
        )


def refusal(task: Task, action: Action, waits: Iterable[Task] = ()) -> OperationError:
    """The task's state does not allow the action: why, and what to do."""
    if task.is_over:
        by = f" by {task.owner}" if task.owner and task.state == "done" else ""
        why = f"is {task.state}{by}; reopen_task opens it again"
    elif action == "reopen":
        why = f"is not over, it is {task.state}"
    elif action == "release" and task.owner is None:
        why = f"is held by nobody; {READY}"
    elif task.state == "blocked":
        whose = ", ".join(
            f"{each.name} ({f'held by {each.owner}' if each.owner else 'open'})" for each in waits
        )
        why = f"waits for {whose}: that must be over first; {READY}"
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
