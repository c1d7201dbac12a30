"""Webhooks are for owners."""

from __future__ import annotations

from hubbub.client import Client
from tests.interaction.mods.permissions import OWNERS, Entry, ask
from tests.interaction.peers import soon

SETTINGS = {
    "attempts": 1,  # nobody listens at this address
    "hooks": [{"name": "audit", "url": "http://127.0.0.1:9/x", "secret": "correct horse battery"}],
}


async def failed(client: Client) -> str:
    """A delivery that was given up."""
    sent = await ask(client, "post_to_channel", channel="desk", text="Tell them.")
    async with soon():
        while True:
            page = await ask(client, "webhook_deliveries", hook="audit", state="failed", limit=200)
            for each in page["deliveries"]:
                if each["message_id"] == sent["id"]:
                    return str(each["id"])


ENTRIES = {
    "list_webhooks": Entry(allowed=OWNERS),
    "webhook_deliveries": Entry(args=lambda _: {"hook": "audit"}, allowed=OWNERS),
    "retry_webhook": Entry(
        make=failed, maker="owner_in", args=lambda id: {"id": id}, allowed=OWNERS
    ),
}
