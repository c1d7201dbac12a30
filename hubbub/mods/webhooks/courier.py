"""Delivers events to their receivers, one at a time for each, oldest first."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import httpx2
from pydantic import JsonValue

from hubbub.errors import LogDamaged, StoreUnavailable
from hubbub.ids import message_id, new_ulid
from hubbub.mods.fields import time_of
from hubbub.mods.host import Host
from hubbub.mods.operation import Statement, Value
from hubbub.mods.repository import Repository, insert
from hubbub.mods.webhooks.schemas import State, WebhookDelivery
from hubbub.mods.webhooks.settings import HookConfig, WebhooksConfig, sign
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Turn
from hubbub.waiting import cancel

__all__ = ["Courier", "DeliveryRepository", "covers_thread", "matches_message", "turn_data"]


MAX_OUTCOME = 300
"""Maximum length of a stored outcome in characters."""


class DeliveryRow(NamedTuple):
    """An event for one receiver."""

    n: int
    id: str
    hook: str
    event: str
    seq: int | None
    data: str | None
    at: float
    state: State
    attempts: int
    due: float
    outcome: str

    def to_schema(self) -> WebhookDelivery:
        return WebhookDelivery(
            number=self.n,
            id=self.id,
            hook=self.hook,
            event=self.event,
            message_id=None if self.seq is None else message_id(self.seq),
            at=time_of(self.at),
            state=self.state,
            attempts=self.attempts,
            outcome=self.outcome,
        )


_ROWS = f"SELECT {', '.join(DeliveryRow._fields)} FROM webhooks_delivery WHERE"
_WAITS = "hook = ? AND state = 'waiting'"


class DeliveryRepository(Repository):
    """The deliveries of all webhooks of a network."""

    async def counts(self, *states: State) -> dict[str, int]:
        """The number of stored deliveries in these states, by hook."""
        places = ", ".join("?" * len(states))
        sql = (
            f"SELECT hook, count(*) FROM webhooks_delivery WHERE state IN ({places}) GROUP BY hook"
        )
        return dict(await self._host.rows(sql, *states))

    async def first(self, hook: str) -> DeliveryRow | None:
        """The oldest waiting delivery."""
        return await self.one(DeliveryRow, f"{_ROWS} {_WAITS} ORDER BY n LIMIT 1", hook)

    async def find(self, id: str) -> DeliveryRow | None:
        return await self.one(DeliveryRow, f"{_ROWS} id = ?", id)

    async def of_hook(
        self, hook: str, state: str | None, before: int, limit: int
    ) -> tuple[tuple[DeliveryRow, ...], bool]:
        """The deliveries of a hook, latest first."""
        sql = f"{_ROWS} hook = ? AND (? IS NULL OR state = ?) AND n < ? ORDER BY n DESC LIMIT ?"
        return await self.page(DeliveryRow, sql, hook, state, state, before, limit=limit)

    async def trim(self, hook: str, most: int) -> int:
        """Drop the oldest waiting deliveries beyond `most`. Returns the number dropped."""
        oldest = (
            f"SELECT coalesce(max(n), 0), count(*) FROM webhooks_delivery WHERE {_WAITS} AND n <= "
            f"(SELECT n FROM webhooks_delivery WHERE {_WAITS} ORDER BY n DESC LIMIT 1 OFFSET ?)"
        )
        ((upto, count),) = await self._host.rows(oldest, hook, hook, most)
        drop = (
            "UPDATE webhooks_delivery SET state = 'dropped', outcome = 'too many were waiting' "
            f"WHERE {_WAITS} AND n <= ?"
        )
        if count:
            await self._host.write([Statement(drop, (hook, upto))])
        return int(count)

    async def delete_old(self, hook: str, retained: int) -> None:
        """Delete all but the last `retained` finished deliveries."""
        old = (
            "DELETE FROM webhooks_delivery WHERE hook = ? AND state != 'waiting' AND n <= ("
            "SELECT n FROM webhooks_delivery WHERE hook = ? AND state != 'waiting' "
            "ORDER BY n DESC LIMIT 1 OFFSET ?)"
        )
        await self._host.write([Statement(old, (hook, hook, retained))])


def insert_delivery(
    hook: str, event: str, at: float, *, seq: int | None = None, data: str = ""
) -> Statement:
    values = {"hook": hook, "event": event, "seq": seq, "data": data or None}
    return insert("webhooks_delivery", id=new_ulid(), at=at, state="waiting", **values)


def _count_attempt(row: DeliveryRow, **changes: Value) -> Statement:
    """Count an attempt and store its result, if the delivery is still waiting."""
    names = "".join(f", {name} = ?" for name in changes)
    sql = f"UPDATE webhooks_delivery SET attempts = attempts + 1{names} WHERE n = ? AND {_WAITS}"
    return Statement(sql, (*changes.values(), row.n, row.hook))


def finish_delivery(row: DeliveryRow, state: State, outcome: str) -> Statement:
    """Mark a delivery as sent or failed."""
    return _count_attempt(row, state=state, outcome=outcome[:MAX_OUTCOME])


def postpone_delivery(row: DeliveryRow, due: float, outcome: str) -> Statement:
    """Schedule the next attempt for `due`."""
    return _count_attempt(row, due=due, outcome=outcome[:MAX_OUTCOME])


def clear_delays(hook: str) -> Statement:
    """Make all waiting deliveries due now."""
    return Statement(f"UPDATE webhooks_delivery SET due = 0 WHERE {_WAITS} AND due > 0", (hook,))


def reset_delivery(row: DeliveryRow) -> Statement:
    """Make a failed or dropped delivery wait again, without counting earlier attempts."""
    sql = (
        "UPDATE webhooks_delivery SET state = 'waiting', attempts = 0, due = 0 "
        "WHERE n = ? AND state IN ('failed', 'dropped')"
    )
    return Statement(sql, (row.n,), rows=1)


_IDS = {
    "id", "seq", "thread_id", "tseq", "sender_id", "sender_kind", "type", "reply_to", "amends",
    "interaction_id", "cause_id", "sent_at",
}  # fmt: skip


def matches_message(hook: HookConfig, message: Message) -> bool:
    """Whether the hook gets an event for the message."""
    return (
        "message" in hook.events
        and not message.imported  # history of another network
        and message.sender_id not in hook.exempt
        and covers_thread(hook, message.thread_id)
    )


def covers_thread(hook: HookConfig, thread: str) -> bool:
    """Whether the hook gets events of the thread."""
    top = thread_ids.root(thread)
    if thread_ids.kind_of(top) == "direct" and not hook.direct:
        return False
    return not hook.threads or top in hook.threads


def message_data(message: Message, *, content: bool) -> dict[str, JsonValue]:
    """The event data for a message: the complete message, or only its metadata."""
    data: dict[str, JsonValue] = message.model_dump(
        mode="json", exclude_none=True, include=None if content else _IDS
    )
    return data


def turn_data(turn: Turn) -> dict[str, JsonValue]:
    """The event data for an ended turn, without its content."""
    return {
        "id": turn.start.id,
        "agent": turn.agent,
        "thread_id": turn.start.thread_id,
        "outcome": turn.end.outcome if turn.end is not None else None,
    }


def request_body(row: DeliveryRow, data: Mapping[str, JsonValue]) -> bytes:
    at = time_of(row.at).isoformat()
    body = {"id": row.id, "type": row.event, "timestamp": at, "data": data}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


MAX_READ = 1000
"""Bytes read of a response, which is only shown to people."""
GONE = 410
"""The status by which a receiver refuses the event for good."""


class DeliveryOutcome(NamedTuple):
    """The result of a request."""

    ok: bool
    outcome: str
    """For people: the status and response, or the error."""
    final: bool = False
    """Whether retrying is pointless."""
    wait: float = 0.0
    """Seconds to wait before the next attempt, as requested by the receiver."""


class WebhookSender:
    """Sends to one receiver over persistent connections."""

    def __init__(self, certificates: ssl.SSLContext):
        # No proxies of the environment, redirects or cookies: requests go to the configured address
        # and nowhere else.
        self._client = httpx2.AsyncClient(
            verify=certificates, trust_env=False, follow_redirects=False, timeout=None
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def send(
        self, hook: HookConfig, id: str, body: bytes, now: float, within: float
    ) -> DeliveryOutcome:
        """Send a request. The response must arrive within `within` seconds. Errors of the receiver
        are outcomes and not raised."""
        headers = sign(hook.secret.get_secret_value(), id, now, body)
        headers |= {"content-type": "application/json", "user-agent": "hubbub-webhooks"}
        try:
            async with asyncio.timeout(within):
                async with self._client.stream(
                    "POST", hook.url, content=body, headers=headers
                ) as response:
                    text = await _beginning(response)
        except TimeoutError:
            return DeliveryOutcome(ok=False, outcome=f"no answer within {within:g} s")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            return DeliveryOutcome(ok=False, outcome=f"{type(error).__name__}: {error}")
        finally:
            self._client.cookies.clear()
        code = response.status_code
        if 200 <= code < 300:
            return DeliveryOutcome(ok=True, outcome=str(code))
        wait = _wait(response.headers.get("retry-after", ""), now)
        return DeliveryOutcome(
            ok=False, outcome=f"{code} {text}".rstrip(), final=code == GONE, wait=wait
        )


async def _beginning(response: httpx2.Response) -> str:
    """The beginning of the response, in one line."""
    read = b""
    async for part in response.aiter_raw(MAX_READ):
        read += part
        if len(read) >= MAX_READ:
            break
    text = read[:MAX_READ].decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _wait(retry_after: str, now: float) -> float:
    """The seconds to wait, from a `Retry-After` header with seconds or a date."""
    if retry_after.isascii() and retry_after.isdecimal() and len(retry_after) < 10:
        return float(retry_after)
    try:
        when = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now)


STORE_RETRY_S = 5.0
"""Seconds before work resumes after the store failed."""
NOTICE_INTERVAL_S = 3600
"""Minimum seconds between two notices to owners about the same problem of a hook."""
CLEANUP_EVERY = 100
"""Number of finished deliveries after which old ones are deleted."""


class Courier:
    """Delivers the events of all hooks. It runs only while there is something to send. Delays are
    timers of the host with the hooks' names as keys; pass them to `on_timer`."""

    def __init__(self, host: Host, config: WebhooksConfig, random: Callable[[], float]):
        self._host, self._random, self._deliveries = host, random, DeliveryRepository(host)
        self._senders: dict[str, WebhookSender] = {}
        self._certificates: ssl.SSLContext | None = None
        self.running: dict[str, asyncio.Task[object] | None] = {}
        """By hook: the task that sends its events, None if it is about to start."""
        self._dirty: set[str] = set()
        """Hooks that got another event while their task was running."""
        self._waiting: Counter[str] = Counter()
        self._until: dict[str, float] = {}
        """By hook: when its first event is retried."""
        self._finished = 0
        self._use(config)

    def _use(self, config: WebhooksConfig) -> None:
        self._config = config
        self._hooks = {hook.name: hook for hook in config.hooks}

    def use(self, config: WebhooksConfig) -> None:
        """Apply new settings. Changed hooks are retried now, because a new address may work."""
        before = self._hooks
        self._use(config)
        for name, hook in self._hooks.items():
            if before.get(name) != hook:
                self._host.spawn(self._retry_now(name))

    async def _retry_now(self, name: str) -> None:
        await self._host.write([clear_delays(name)])
        self.on_timer(name)

    async def start(self) -> None:
        """Resume waiting deliveries."""
        self._waiting.update(await self._deliveries.counts("waiting"))
        for name in self._hooks:
            if self._waiting[name]:
                self._wake(name)

    async def stop(self) -> None:
        tasks = [task for task in self.running.values() if task is not None]
        await cancel(*tasks)
        for sender in self._senders.values():
            await sender.close()

    def on_event(self, name: str) -> None:
        """Start delivery of an event that is durable or about to be."""
        self._waiting[name] += 1
        self._wake(name)

    def on_timer(self, name: str) -> None:
        """Resume after a delay."""
        self._until.pop(name, None)
        self._wake(name)

    def _is_over_limit(self, name: str) -> bool:
        """With a margin, so that not every event for a dead receiver drops another one."""
        most = self._config.most_waiting
        return self._waiting[name] > most + most // 50

    def _wake(self, name: str) -> None:
        """Start the task of a hook if it is not running and work may be due."""
        if name in self.running:
            self._dirty.add(name)
        elif self._until.get(name, 0.0) <= self._host.now() or self._is_over_limit(name):
            self.running[name] = None
            self._host.spawn(self._run(name))

    async def _run(self, name: str) -> None:
        self.running[name] = asyncio.current_task()
        try:
            await self._deliver(name)
        except StoreUnavailable:
            self._wait_until(name, self._host.now() + STORE_RETRY_S)
        finally:
            del self.running[name]
            self._dirty.discard(name)

    async def _deliver(self, name: str) -> None:
        """Send waiting events, oldest first, until none is left or the first one is delayed."""
        self._dirty.add(name)
        while hook := self._hooks.get(name):
            if name in self._dirty:
                self._dirty.discard(name)
                await self._host.write(())  # waits until earlier writes can be read
            if self._is_over_limit(name):
                await self._trim(name)
            row = await self._deliveries.first(name)
            if row is not None and row.due > self._host.now() and name not in self._dirty:
                self._wait_until(name, row.due)
                return
            if row is None and name not in self._dirty:
                self._waiting[name] = 0
                return
            if row is not None and row.due <= self._host.now():
                await self._send(hook, row)

    def _wait_until(self, name: str, due: float) -> None:
        self._until[name] = due
        self._host.at(due, name)

    async def _send(self, hook: HookConfig, row: DeliveryRow) -> None:
        sender = await self._sender(hook.name)
        try:
            body = request_body(row, await self._data(hook, row))
        except LogDamaged as damage:  # repeating it would hold up all later events
            answer = DeliveryOutcome(ok=False, outcome=str(damage), final=True)
        else:
            answer = await sender.send(hook, row.id, body, self._host.now(), self._config.timeout)
        attempts = row.attempts + 1
        if answer.ok:
            await self._finish(row, "sent", answer)
        elif answer.final or attempts >= self._config.attempts:
            await self._finish(row, "failed", answer)
            self._notify_owners(hook.name, "gave up", f"an event was given up ({answer.outcome})")
        else:
            due = self._host.now() + self._delay(attempts, answer.wait)
            await self._host.write([postpone_delivery(row, due, answer.outcome)])

    async def _finish(self, row: DeliveryRow, state: State, answer: DeliveryOutcome) -> None:
        await self._host.write([finish_delivery(row, state, answer.outcome)])
        self._waiting[row.hook] -= 1
        self._finished += 1
        if self._finished >= CLEANUP_EVERY:
            self._finished = 0
            await self._deliveries.delete_old(row.hook, self._config.kept)

    def _delay(self, attempts: int, wanted: float) -> float:
        """Seconds until the next attempt, half of them random, so that many hubs do not retry at
        the same time."""
        config = self._config
        longest = min(config.longest_retry, config.first_retry * 2.0 ** min(attempts - 1, 32))
        return max(longest * (0.5 + 0.5 * self._random()), min(wanted, config.longest_retry))

    async def _data(self, hook: HookConfig, row: DeliveryRow) -> Mapping[str, JsonValue]:
        if row.seq is None:
            data: Mapping[str, JsonValue] = json.loads(row.data or "{}")
            return data
        [message] = await self._host.log(row.seq - 1, 1)
        if hook.content:  # as it is shown now: it can have been deleted while the event waited
            [message] = await self._host.page(message.thread_id, message.tseq + 1, 1)
        return message_data(message, content=hook.content)

    async def _sender(self, name: str) -> WebhookSender:
        if name not in self._senders:
            if self._certificates is None:
                # Loading the system's certificates is slow.
                self._certificates = await asyncio.to_thread(ssl.create_default_context)
            self._senders[name] = WebhookSender(self._certificates)
        return self._senders[name]

    async def _trim(self, name: str) -> None:
        dropped = await self._deliveries.trim(name, self._config.most_waiting)
        self._waiting[name] = min(self._waiting[name], self._config.most_waiting)
        if dropped:
            self._notify_owners(
                name, "dropped", f"{dropped} events were dropped: too many are waiting"
            )

    def _notify_owners(self, name: str, code: str, problem: str) -> None:
        """Send a notice to owners, at most once an hour."""
        text = f"The webhook {name}: {problem}; see `hubbub webhooks deliveries {name}`"
        hour = int(self._host.now() // NOTICE_INTERVAL_S)
        self._host.notify_owners(text, {"hook": name, "what": code}, f"{name}:{code}:{hour}")
