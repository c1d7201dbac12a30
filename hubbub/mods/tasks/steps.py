"""One step of a task: what its table of states allows, and what stands in the task then. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.mods.tasks.rows import Found, TaskRow
from hubbub.mods.tasks.states import ACTIONS, OVER, Action
from hubbub.protocol.codes import ErrorCode

__all__ = ["Step", "check_free", "refusal", "stepped"]

READY = "list_tasks with ready=true shows what can be claimed"


class Step(NamedTuple):
    """What somebody wants to do with a task."""

    action: Action
    by: str
    owner: bool = False
    """Whether that is an owner of the network."""
    to: str | None = None
    """For `assign`: who is to do it."""
    result: str = ""
    """For `finish`."""


def stepped(found: Found, step: Step, now: float, waits: Iterable[TaskRow] = ()) -> TaskRow:
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


def refusal(found: Found, action: Action, waits: Iterable[TaskRow] = ()) -> OperationError:
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


def _details(found: Found) -> dict[str, object]:
    row = found.row
    details: dict[str, object] = {"task": f"t{row.id}", "state": found.state}
    if row.owner is not None and row.state not in OVER:
        details["held_by"] = row.owner
    if found.waits and row.state not in OVER:
        details["waits_for"] = [f"t{id}" for id in found.waits]
    return details
