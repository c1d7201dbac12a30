"""Who reads a thread exports it; owners import."""

from __future__ import annotations

import json

from hubbub.client import Client
from tests.interaction.mods.permissions import OWNERS, Entry

HEADER = {"transcript": 1, "network": "old", "epoch": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}


async def thread(client: Client) -> str:
    """The thread, as the error shows it."""
    return "channel_desk"


ENTRIES = {
    "export_transcript": Entry(
        make=thread, args=lambda id: {"thread": id}, missing="channel_nowhere"
    ),
    "import_transcript": Entry(
        args=lambda _: {"header": json.dumps(HEADER), "lines": []}, allowed=OWNERS
    ),
}
