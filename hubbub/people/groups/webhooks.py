"""Webhooks: programs elsewhere that are notified of what happens."""

from __future__ import annotations

from hubbub.mods.webhooks.schemas import WebhookDelivery
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.shown import NoteLine, done

__all__ = ["COMMANDS"]


def retried(found: WebhookDelivery, person: PersonClient) -> list[NoteLine]:
    return done(f"{found.id} is {found.state} again")


COMMANDS = (
    Command(
        "webhooks list",
        "list_webhooks",
        operator=True,
        columns=(
            "webhook=name",
            "address=url",
            "events",
            "waiting",
            "failed",
            "next_attempt",
            "outcome",
        ),
    ),
    Command(
        "webhooks deliveries",
        "webhook_deliveries",
        operator=True,
        columns=(
            "no=number",
            "id",
            "at",
            "event",
            "message_id",
            "state",
            "tries=attempts",
            "outcome",
        ),
    ),
    Command("webhooks retry", "retry_webhook", retried, operator=True),
)
