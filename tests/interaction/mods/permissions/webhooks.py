"""Webhooks are for owners."""

from __future__ import annotations

from hubbub.client import Client
from tests.interaction.mods.permissions import Entry, Who, ask
from tests.interaction.peers import soon

SETTINGS = {
    "attempts": 1,  # nobody listens at this address
    "hooks": [{"name": "audit", "url": "http://127.0.0.1:9/x", "secret": "correct horse battery"}],
}


def owners(who: Who) -> bool:
    """In an open network, as this one is, all but agents."""
    return who.role != "agent"


async def failed(client: Client) -> str:
    """A delivery that was given up; agents do not get to know of any."""
    sent = await ask(client, "post_to_channel", channel="desk", text="Tell them.")
    if client.participant.startswith("agent"):
        return "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    async with soon():
        while True:
            page = await ask(client, "webhook_deliveries", hook="audit", state="failed", limit=200)
            for each in page["deliveries"]:
                if each["message_id"] == sent["id"]:
                    return str(each["id"])


ENTRIES = {
    "list_webhooks": Entry(allowed=owners),
    "webhook_deliveries": Entry(args=lambda _: {"hook": "audit"}, allowed=owners),
    "retry_webhook": Entry(make=failed, args=lambda id: {"id": id}, allowed=owners),
}
