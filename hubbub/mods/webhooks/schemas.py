"""Inputs and outputs of the mod `webhooks`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from hubbub.mods.fields import Limit, Position
from hubbub.protocol.messages import Model
from hubbub.protocol.operations import Input

State = Literal["waiting", "sent", "failed", "dropped"]


class ListWebhooks(Input):
    pass


class ReadDeliveries(Input):
    hook: Annotated[str, Field(min_length=1, max_length=64)]
    """The webhook's name."""
    state: State | None = None
    """Only those that are waiting, sent, failed (given up) or dropped."""
    before: Position | None = None
    """Only deliveries before this number."""
    limit: Limit = 50
    """How many at most."""


class RetryWebhook(Input):
    id: Annotated[str, Field(min_length=1, max_length=64)]
    """The delivery that failed or was dropped."""


class Webhook(Model):
    name: str
    url: str
    """Without what may be secret in it: name and password, and the part after `?`."""
    events: tuple[str, ...]
    waiting: int
    """Events that wait to be sent."""
    failed: int
    """Of those that are remembered: given up or dropped."""
    next_attempt: AwareDatetime | None = None
    """When the one that waits longest is tried again, if it has failed before."""
    outcome: str = ""
    """Of the last attempt at it."""


class Webhooks(Model):
    webhooks: tuple[Webhook, ...]


class WebhookDelivery(Model):
    number: int
    """In the order in which they are sent."""
    id: str
    """As the receiver is told it; the same each time it is sent."""
    hook: str
    event: str
    message_id: str | None = None
    """The message that it tells of."""
    at: AwareDatetime
    """When it happened."""
    state: State
    attempts: int
    """How often it was sent."""
    outcome: str = ""
    """Of the last attempt."""


class DeliveryPage(Model):
    deliveries: tuple[WebhookDelivery, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones: ask again with `before`."""
