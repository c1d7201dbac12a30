"""Who reads a thread sets reminders in it; each is its own's, and owners' of the network."""

from __future__ import annotations

from hubbub.client import Client
from tests.interaction.mods.permissions import THREAD, Entry, Who, ask

TEXT = {"text": "look", "when": "every 2h"}


def own(who: Who) -> bool:
    return who.own


def trusted(who: Who) -> bool:
    """Whose it is, and owners."""
    return who.own or who.role == "owner"


async def reminder(client: Client) -> str:
    return str((await ask(client, "remind", thread=THREAD, **TEXT))["id"])


def _about() -> Entry:
    return Entry(
        make=reminder,
        args=lambda id: {"id": id},
        allowed=trusted,
        missing="r999999",
        refused=("not_found",),
    )


SETTINGS = {"each": 100}
ENTRIES = {
    "remind": Entry(args=lambda thread: {"thread": thread, **TEXT}),
    "list_reminders": Entry(
        make=reminder,
        found=lambda answer, id: id in [each["id"] for each in answer["reminders"]],
        allowed=own,
    ),
    "cancel_reminder": _about(),
    "pause_reminder": _about(),
    "resume_reminder": _about(),
}
