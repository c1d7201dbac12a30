"""Who reads the thread of a poll may vote; its author and owners close it."""

from __future__ import annotations

from hubbub.client import Client
from tests.interaction.mods.permissions import AUTHORS_AND_OWNERS, THREAD, Entry, ask

QUESTION = {"question": "Lunch?", "options": ["Soup", "Rice"]}
SETTINGS = {"announce": False, "time_limit": 30}


async def poll(client: Client) -> str:
    made = await ask(client, "create_poll", thread=THREAD, **QUESTION)
    return str(made["id"])


def _about(**more: object) -> Entry:
    return Entry(make=poll, args=lambda id: {"poll": id, **more}, missing="p999999")


ENTRIES = {
    "create_poll": Entry(args=lambda thread: {"thread": thread, **QUESTION}),
    "list_polls": Entry(
        make=poll, found=lambda answer, id: id in [each["id"] for each in answer["polls"]]
    ),
    "read_poll": _about(),
    "vote": _about(options=["Soup"]),
    "retract_vote": _about(),
    "close_poll": Entry(
        make=poll,
        args=lambda id: {"poll": id},
        allowed=AUTHORS_AND_OWNERS,
        missing="p999999",
    ),
}
