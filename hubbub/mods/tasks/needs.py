"""Dependencies between tasks: of one thread, and never in a circle."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.errors import OperationError
from hubbub.mods.ids import number_of
from hubbub.mods.tasks.shelf import Shelf
from hubbub.protocol.codes import ErrorCode

__all__ = ["checked_needs"]


async def checked_needs(
    shelf: Shelf, thread: str, names: Sequence[str], task: int | None = None
) -> list[int]:
    """The numbers of the tasks that `task` (None: a new one) is to depend on.

    Raises `OperationError` for a task that is not in the thread, and for a circle, with the names
    of all in it.
    """
    needs = sorted({number_of(name) for name in names})
    rows = await shelf.rows_of(needs)
    for id in needs:
        if id not in rows or rows[id].thread != thread:
            text = f"depends_on: there is no task t{id} in the thread of this one; see list_tasks"
            raise OperationError(ErrorCode.NOT_FOUND, text)
    if task is not None:
        circle = await _way(shelf, needs, task)
        if circle:
            await _refuse(shelf, [task, *circle])
    return needs


async def _way(shelf: Shelf, starts: Sequence[int], goal: int) -> list[int]:
    """A shortest way along dependencies from a start to the goal; empty: there is none."""
    came: dict[int, int | None] = dict.fromkeys(starts)
    layer = list(starts)
    while layer and goal not in came:
        pairs = await shelf.needed_by(layer)
        layer = []
        for task, needed in pairs:
            if needed not in came:
                came[needed] = task
                layer.append(needed)
    if goal not in came:
        return []
    way = [goal]
    while (before := came[way[0]]) is not None:
        way.insert(0, before)
    return way


async def _refuse(shelf: Shelf, circle: Sequence[int]) -> None:
    rows = await shelf.rows_of(set(circle))
    names = " -> ".join(rows[id].name for id in circle)
    raise OperationError(
        ErrorCode.BAD_REQUEST,
        f"depends_on: none of these could ever be claimed, each would wait for the next: {names}",
        details={"cycle": [f"t{id}" for id in circle]},
    )
