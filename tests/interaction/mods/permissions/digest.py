"""A digest tells of threads that the caller reads; a visit is the caller's own."""

from __future__ import annotations

from hubbub.client import Client
from tests.interaction.mods.permissions import EVERYBODY, Entry


async def thread(client: Client) -> str:
    """The thread, as the error shows it."""
    return "channel_desk"


ENTRIES = {
    "digest": Entry(make=thread, args=lambda id: {"threads": [id]}, missing="channel_nowhere"),
    "mark_visit": Entry(args=lambda _: {"upto": 0}, allowed=EVERYBODY),
}
