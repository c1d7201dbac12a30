"""What the mod `tasks` has to say in a digest."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hubbub.mods.digesting import News
from hubbub.mods.ids import BEYOND
from hubbub.mods.tasks.rows import Found
from hubbub.mods.tasks.shelf import Filter, Shelf
from hubbub.mods.times import time_of

__all__ = ["news_of"]


async def news_of(
    shelf: Shelf, threads: Collection[str], reader: str, after: float, limit: int
) -> Sequence[News]:
    """Tasks that the reader holds, besides requests, and those that were done since `after`."""
    held = await shelf.tasks(threads, Filter(state="claimed", owner=reader), BEYOND, limit)
    done = await shelf.tasks(threads, Filter(state="done"), BEYOND, limit)
    return [
        *(_waits(each) for each in held if each.row.request is None),
        *(_done(each) for each in done if each.row.changed_at >= after),
    ]


def _waits(task: Found) -> News:
    row = task.row
    due = f", due {time_of(row.due):%Y-%m-%d}" if row.due is not None else ""
    return News("waiting", row.thread, f"t{row.id}", f"task t{row.id}: {row.title}{due}")


def _done(task: Found) -> News:
    row = task.row
    by = f" by {row.owner}" if row.owner else ""
    return News("decided", row.thread, f"t{row.id}", f"task t{row.id} done{by}: {row.title}")
