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
    """Only deliveries in this state: waiting, sent, failed (given up) or dropped."""
    before: Position | None = None
    """Only deliveries with a lower number."""
    limit: Limit = 50
    """Maximum number of results."""


class RetryWebhook(Input):
    id: Annotated[str, Field(min_length=1, max_length=64)]
    """Id of the failed or dropped delivery."""


class Webhook(Model):
    name: str
    url: str
    """Without the parts that may be secret: user name, password and query string."""
    events: tuple[str, ...]
    waiting: int
    """Number of events waiting to be sent."""
    failed: int
    """Number of recorded deliveries that were given up or dropped."""
    next_attempt: AwareDatetime | None = None
    """When the oldest waiting event is retried, if an attempt failed."""
    outcome: str = ""
    """Outcome of the last attempt to send that event."""


class Webhooks(Model):
    webhooks: tuple[Webhook, ...]


class WebhookDelivery(Model):
    number: int
    """Deliveries are sent in the order of their numbers."""
    id: str
    """The delivery id that the receiver gets, the same on every attempt."""
    hook: str
    event: str
    message_id: str | None = None
    """The message that the event is about."""
    at: AwareDatetime
    """Time of the event."""
    state: State
    attempts: int
    """Number of attempts to send it."""
    outcome: str = ""
    """Outcome of the last attempt."""


class DeliveryPage(Model):
    deliveries: tuple[WebhookDelivery, ...]
    """Latest first."""
    more: bool
    """Whether there are earlier ones. To get them, call again with `before`."""
