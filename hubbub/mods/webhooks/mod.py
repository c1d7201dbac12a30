"""The mod `webhooks`: sends events of the network to other programs over HTTP.

mods:
  - webhooks:
      hooks:
        - {name: audit, url: "https://example.org/hook", secret: "${AUDIT_SECRET}"}
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from urllib.parse import urlsplit

from pydantic import JsonValue

from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.fields import BEYOND, time_of
from hubbub.mods.operation import Calling, Commit, Statement, bad_request, not_found, operation
from hubbub.mods.webhooks.courier import (
    Courier,
    DeliveryRepository,
    covers_thread,
    insert_delivery,
    matches_message,
    reset_delivery,
    turn_data,
)
from hubbub.mods.webhooks.schemas import (
    DeliveryPage,
    ListWebhooks,
    ReadDeliveries,
    RetryWebhook,
    Webhook,
    WebhookDelivery,
    Webhooks,
)
from hubbub.mods.webhooks.settings import EventName, WebhooksConfig
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.turns import Turn

__all__ = ["WebhooksMod"]


class WebhooksMod(Mod):
    """Sends events of the network to other programs: messages, joins, leaves, and ended turns.

    Each event is a signed POST, retried until the receiver accepts it. Events are sent in order.
    They are stored in the same transaction as their message, so none is lost when the hub stops. A
    receiver can get an event twice, with the same id.
    """

    name = "webhooks"
    Config = WebhooksConfig
    config: WebhooksConfig
    migrations = "tables"

    def __init__(self, config: WebhooksConfig):
        super().__init__(config)
        self.random: Callable[[], float] = random.random
        """Returns numbers in [0, 1), for jitter between attempts."""
        self._courier: Courier
        self._deliveries: DeliveryRepository

    async def start(self) -> None:
        self._deliveries = DeliveryRepository(self.host)
        self._courier = Courier(self.host, self.config, self.random)
        await self._courier.start()

    async def stop(self) -> None:
        await self._courier.stop()

    def reconfigure(self, config: ModConfig) -> None:
        super().reconfigure(config)
        self._courier.use(self.config)

    # Hooks ------------------------------------------------------------------------------------

    def watches(self, draft: Draft) -> bool:
        return bool(self.config.hooks)

    def on_stored(self, message: Message) -> Sequence[Statement]:
        statements: list[Statement] = []
        for hook in self.config.hooks:
            if matches_message(hook, message):
                now = message.sent_at.timestamp()
                statements.append(insert_delivery(hook.name, "message", now, seq=message.seq))
                self._courier.on_event(hook.name)
        return statements

    def on_join(self, participant: str) -> None:
        self._record("join", self._participant_data(participant))

    def on_leave(self, participant: str) -> None:
        self._record("leave", self._participant_data(participant))

    def on_turn(self, turn: Turn) -> None:
        self._record("turn", turn_data(turn), turn.start.thread_id)

    def on_timer(self, key: str) -> None:
        self._courier.on_timer(key)

    def _participant_data(self, participant: str) -> Mapping[str, JsonValue]:
        return {"participant": participant, "kind": self.host.kind_of(participant)}

    def _record(self, event: EventName, data: Mapping[str, JsonValue], thread: str = "") -> None:
        hooks = [
            hook.name
            for hook in self.config.hooks
            if event in hook.events and (not thread or covers_thread(hook, thread))
        ]
        if hooks:
            now, text = self.host.now(), json.dumps(data)
            statements = [insert_delivery(name, event, now, data=text) for name in hooks]
            self.host.spawn(self._store(statements, hooks))

    async def _store(self, statements: Sequence[Statement], hooks: Sequence[str]) -> None:
        await self.host.write(statements)
        for name in hooks:
            self._courier.on_event(name)

    # Operations -------------------------------------------------------------------------------

    @operation(permission="admin", tool=False)
    async def list_webhooks(self, call: Calling, args: ListWebhooks) -> Webhooks:
        """List the webhooks with their waiting and failed events."""
        counts = self._deliveries.counts
        waiting, failed = await counts("waiting"), await counts("failed", "dropped")
        webhooks: list[Webhook] = []
        for hook in self.config.hooks:
            first = await self._deliveries.first(hook.name)
            due = first.due if first is not None else 0.0
            webhooks.append(
                Webhook(
                    name=hook.name,
                    url=_public_url(hook.url),
                    events=hook.events,
                    waiting=waiting.get(hook.name, 0),
                    failed=failed.get(hook.name, 0),
                    next_attempt=time_of(due or None),
                    outcome=first.outcome if first is not None else "",
                )
            )
        return Webhooks(webhooks=tuple(webhooks))

    @operation(permission="admin", tool=False)
    async def webhook_deliveries(self, call: Calling, args: ReadDeliveries) -> DeliveryPage:
        """List the deliveries of a webhook, sent or waiting."""
        hooks = [hook.name for hook in self.config.hooks]
        if args.hook not in hooks:
            names = ", ".join(hooks) or "none"
            raise not_found(f"there is no webhook {args.hook!r}; available: {names}")
        before = args.before or BEYOND
        rows, more = await self._deliveries.of_hook(args.hook, args.state, before, args.limit)
        return DeliveryPage(deliveries=tuple(row.to_schema() for row in rows), more=more)

    @operation(permission="admin", tool=False, output=WebhookDelivery)
    async def retry_webhook(self, call: Calling, args: RetryWebhook) -> Commit:
        """Send a failed or dropped event to its webhook again."""
        row = await self._deliveries.find(args.id)
        if row is None or row.hook not in [hook.name for hook in self.config.hooks]:
            raise not_found(f"there is no delivery {args.id!r}; see webhook_deliveries")
        if row.state not in ("failed", "dropped"):
            raise bad_request(
                f"{args.id} is {row.state}; only failed or dropped ones can be retried"
            )
        delivery = row._replace(state="waiting", attempts=0).to_schema()
        return Commit([reset_delivery(row)], delivery, applied=partial(self._retried, row.hook))

    def _retried(self, name: str) -> None:
        self._courier.on_timer(name)
        self._courier.on_event(name)


def _public_url(url: str) -> str:
    """The address without the parts that may be secret."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}{'?…' if parts.query else ''}"
