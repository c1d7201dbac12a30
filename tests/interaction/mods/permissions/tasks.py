"""Who reads the thread of a task may do everything with one that nobody else holds; what somebody
holds is released, finished, cancelled and given to others by the holder, the author and owners."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hubbub.client import Client
from tests.interaction.mods.permissions import AUTHORS_AND_OWNERS, THREAD, Entry, ask


async def task(client: Client) -> str:
    made = await ask(client, "create_task", title="Write", thread=THREAD)
    return str(made["id"])


async def held(client: Client) -> str:
    id = await task(client)
    await ask(client, "claim_task", task=id)
    return id


async def done(client: Client) -> str:
    id = await task(client)
    await ask(client, "finish_task", task=id)
    return id


async def board(client: Client) -> str:
    """The one that the thread has by then."""
    await task(client)
    found = await ask(client, "list_boards", thread=THREAD)
    return str(found["boards"][-1]["id"])


SETTINGS = {"time_limit": 30}
_named = iter(range(1_000_000))


def _about(make: Callable[[Client], Awaitable[str]] = task, **more: object) -> Entry:
    return Entry(make=make, args=lambda id: {"task": id, **more}, missing="t999999")


def _holding(**more: object) -> Entry:
    return Entry(
        make=held,
        args=lambda id: {"task": id, **more},
        allowed=AUTHORS_AND_OWNERS,
        missing="t999999",
    )


ENTRIES = {
    "create_board": Entry(args=lambda thread: {"thread": thread, "name": f"{next(_named)}"}),
    "list_boards": Entry(
        make=board, found=lambda answer, id: id in [each["id"] for each in answer["boards"]]
    ),
    "board_as_markdown": Entry(make=board, args=lambda id: {"board": id}, missing="b999999"),
    "create_task": Entry(args=lambda thread: {"thread": thread, "title": "Write"}),
    "list_tasks": Entry(
        make=task, found=lambda answer, id: id in [each["id"] for each in answer["tasks"]]
    ),
    "read_task": _about(),
    "update_task": _about(title="Rewrite"),
    "claim_task": _about(),
    "reopen_task": _about(done),
    "release_task": _holding(),
    "finish_task": _holding(),
    "cancel_task": _holding(),
    "assign_task": _holding(to="other"),
}
