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

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from hubbub.errors import OperationError
from hubbub.mods.fields import time_of
from hubbub.mods.operation import conflict, forbidden
from hubbub.mods.tasks.schemas import State, Task

__all__ = ["ACTIONS", "TaskStep", "changed_task", "check_free", "stepped"]

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
