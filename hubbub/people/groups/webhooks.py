"""Webhooks: programs elsewhere that are told what happens."""

from __future__ import annotations

from hubbub.mods.webhooks.schemas import Delivery, DeliveryPage, Webhooks
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.figures import moment
from hubbub.people.shown import NoteLine, done, paged, table

__all__ = ["COMMANDS"]


def listed(found: Webhooks, person: PersonClient) -> list[NoteLine]:
    rows = (
        (
            each.name,
            each.url,
            ", ".join(each.events),
            str(each.waiting),
            str(each.failed),
            "" if each.next_attempt is None else moment(each.next_attempt),
            each.outcome,
        )
        for each in found.webhooks
    )
    return table(
        ("WEBHOOK", "ADDRESS", "EVENTS", "WAITING", "FAILED", "NEXT", "LAST OUTCOME"), rows
    )


def deliveries(found: DeliveryPage, person: PersonClient) -> list[NoteLine]:
    rows = [
        (
            str(each.number),
            each.id,
            moment(each.at),
            f"{each.event} {each.message_id}" if each.message_id else each.event,
            each.state,
            str(each.attempts),
            each.outcome,
        )
        for each in found.deliveries
    ]
    notes = table(("NO", "ID", "AT", "EVENT", "STATE", "TRIES", "LAST OUTCOME"), rows)
    return paged(
        notes, found.more, f"there are earlier ones: --before {rows[-1][0] if rows else ''}"
    )


def retried(found: Delivery, person: PersonClient) -> list[NoteLine]:
    return done(f"{found.id} is {found.state} again")


COMMANDS = (
    Command("webhooks list", "list_webhooks", listed, operator=True),
    Command("webhooks deliveries", "webhook_deliveries", deliveries, operator=True),
    Command("webhooks retry", "retry_webhook", retried, operator=True),
)
