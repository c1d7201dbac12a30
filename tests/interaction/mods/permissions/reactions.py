"""Who reads a message may react to it and see who has."""

from __future__ import annotations

from hubbub.client import Client
from tests.interaction.mods.permissions import Entry, ask


async def message(client: Client) -> str:
    sent = await ask(client, "post_to_channel", channel="desk", text="Ship it?")
    return str(sent["id"])


async def liked(client: Client) -> str:
    id = await message(client)
    await ask(client, "add_reaction", message_id=id, emoji="👍")
    return id


def _about() -> Entry:
    return Entry(make=liked, args=lambda id: {"message_id": id, "emoji": "👍"}, missing="m999999")


ENTRIES = {
    "add_reaction": _about(),
    "remove_reaction": _about(),
    "toggle_reaction": _about(),
    "list_reactions": Entry(
        make=liked,
        args=lambda id: {"message_ids": [id]},
        found=lambda answer, id: [each["message_id"] for each in answer["messages"]] == [id],
    ),
}
