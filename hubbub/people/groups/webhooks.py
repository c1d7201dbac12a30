"""Webhooks: other programs that are notified of events."""

from __future__ import annotations

from hubbub.mods.webhooks.schemas import WebhookDelivery
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.shown import NoteLine, done

__all__ = ["COMMANDS"]


def retried(answer: WebhookDelivery, person: PersonClient) -> list[NoteLine]:
    return done(f"{answer.id} is {answer.state} again")


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
