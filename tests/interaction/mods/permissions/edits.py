"""Messages are edited by their authors and deleted by owners, too; their history is for readers."""

from __future__ import annotations

from hubbub.client import Client
from tests.interaction.mods.permissions import AUTHORS, AUTHORS_AND_OWNERS, THREAD, Entry, ask


async def message(client: Client) -> str:
    channel = THREAD.partition(".")[2]
    return str((await ask(client, "post_to_channel", channel=channel, text="old"))["id"])


ENTRIES = {
    "edit_message": Entry(
        make=message,
        args=lambda id: {"message_id": id, "text": "new"},
        allowed=AUTHORS,
        missing="m999999",
    ),
    "delete_message": Entry(
        make=message,
        args=lambda id: {"message_id": id},
        allowed=AUTHORS_AND_OWNERS,
        missing="m999999",
    ),
    "message_history": Entry(make=message, args=lambda id: {"message_id": id}, missing="m999999"),
}
