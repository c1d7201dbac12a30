"""Brings events to their receivers: for each of them one at a time, the oldest first."""

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

from hubbub.errors import StoreUnavailable
from hubbub.ids import message_id, new_ulid
from hubbub.mods.fields import time_of
from hubbub.mods.host import Host
from hubbub.mods.operation import Statement, Value
from hubbub.mods.repository import Repository, insert
from hubbub.mods.webhooks.schemas import State, WebhookDelivery
from hubbub.mods.webhooks.settings import HookConfig, WebhooksConfig, signed
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Turn

__all__ = ["Courier", "DeliveryRepository", "concerns", "reaches", "turn_data"]


SHORT = 300
"""Characters of an outcome."""


class DeliveryRow(NamedTuple):
    """One event on its way to one receiver."""

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
    """Of all hooks of a network."""

    async def counts(self, *states: State) -> dict[str, int]:
        """How many events are in these states, by hook, of those that are remembered."""
        places = ", ".join("?" * len(states))
        sql = (
            f"SELECT hook, count(*) FROM webhooks_delivery WHERE state IN ({places}) GROUP BY hook"
        )
        return dict(await self._host.rows(sql, *states))

    async def first(self, hook: str) -> DeliveryRow | None:
        """The one that waits longest."""
        return await self.one(DeliveryRow, f"{_ROWS} {_WAITS} ORDER BY n LIMIT 1", hook)

    async def find(self, id: str) -> DeliveryRow | None:
        return await self.one(DeliveryRow, f"{_ROWS} id = ?", id)

    async def of_hook(
        self, hook: str, state: str | None, before: int, limit: int
    ) -> tuple[tuple[DeliveryRow, ...], bool]:
        """Latest first."""
        sql = f"{_ROWS} hook = ? AND (? IS NULL OR state = ?) AND n < ? ORDER BY n DESC LIMIT ?"
        return await self.page(DeliveryRow, sql, hook, state, state, before, limit=limit)

    async def trim(self, hook: str, most: int) -> int:
        """Drop the oldest of those that wait, until there are `most`; how many that were."""
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
            await self._host.keep([Statement(drop, (hook, upto))])
        return int(count)

    async def forget(self, hook: str, kept: int) -> None:
        """All but the last ones of those that are done with."""
        old = (
            "DELETE FROM webhooks_delivery WHERE hook = ? AND state != 'waiting' AND n <= ("
            "SELECT n FROM webhooks_delivery WHERE hook = ? AND state != 'waiting' "
            "ORDER BY n DESC LIMIT 1 OFFSET ?)"
        )
        await self._host.keep([Statement(old, (hook, hook, kept))])


def added(hook: str, event: str, at: float, *, seq: int | None = None, data: str = "") -> Statement:
    """An event for a receiver."""
    of = {"hook": hook, "event": event, "seq": seq, "data": data or None}
    return insert("webhooks_delivery", id=new_ulid(), at=at, state="waiting", **of)


def _tried(row: DeliveryRow, **changes: Value) -> Statement:
    """It was sent once more, with these consequences; if it still waits."""
    names = "".join(f", {name} = ?" for name in changes)
    sql = f"UPDATE webhooks_delivery SET attempts = attempts + 1{names} WHERE n = ? AND {_WAITS}"
    return Statement(sql, (*changes.values(), row.n, row.hook))


def done(row: DeliveryRow, state: State, outcome: str) -> Statement:
    """It was sent, or is given up."""
    return _tried(row, state=state, outcome=outcome[:SHORT])


def postponed(row: DeliveryRow, due: float, outcome: str) -> Statement:
    """It is tried again at `due`."""
    return _tried(row, due=due, outcome=outcome[:SHORT])


def at_once(hook: str) -> Statement:
    """Nothing waits any longer than for its turn."""
    return Statement(f"UPDATE webhooks_delivery SET due = 0 WHERE {_WAITS} AND due > 0", (hook,))


def again(row: DeliveryRow) -> Statement:
    """It waits anew, as if it had never been tried."""
    sql = (
        "UPDATE webhooks_delivery SET state = 'waiting', attempts = 0, due = 0 "
        "WHERE n = ? AND state IN ('failed', 'dropped')"
    )
    return Statement(sql, (row.n,), rows=1)


_IDS = {
    "id", "seq", "thread_id", "tseq", "sender_id", "sender_kind", "type", "reply_to", "amends",
    "interaction_id", "cause_id", "sent_at",
}  # fmt: skip


def concerns(hook: HookConfig, message: Message) -> bool:
    """Whether the hook is told of a message."""
    return (
        "message" in hook.events
        and not message.imported  # that is history, and of another network
        and message.sender_id not in hook.exempt
        and reaches(hook, message.thread_id)
    )


def reaches(hook: HookConfig, thread: str) -> bool:
    """Whether the hook is told what happens in a thread."""
    top = thread_ids.root(thread)
    if thread_ids.kind_of(top) == "direct" and not hook.direct:
        return False
    return not hook.threads or top in hook.threads


def message_data(message: Message, *, content: bool) -> dict[str, JsonValue]:
    """What a hook is told of a message: all, or who, where and when."""
    data: dict[str, JsonValue] = message.model_dump(
        mode="json", exclude_none=True, include=None if content else _IDS
    )
    return data


def turn_data(turn: Turn) -> dict[str, JsonValue]:
    """What a hook is told of a turn that has ended; never what was said in it."""
    return {
        "id": turn.start.id,
        "agent": turn.agent,
        "thread_id": turn.start.thread_id,
        "outcome": turn.end.outcome if turn.end is not None else None,
    }


def body_of(row: DeliveryRow, data: Mapping[str, JsonValue]) -> bytes:
    """The body of the request."""
    at = time_of(row.at).isoformat()
    told = {"id": row.id, "type": row.event, "timestamp": at, "data": data}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


MOST_READ = 1000
"""Bytes of an answer that are looked at; nobody needs more of it."""
GONE = 410
"""The receiver wants no more of this, ever."""


class DeliveryOutcome(NamedTuple):
    """What became of a request."""

    fine: bool
    outcome: str
    """For people: the status, or why there is none."""
    final: bool = False
    """Whether to ask again would be of no use."""
    wait: float = 0.0
    """Seconds for which the receiver wants to be left alone."""


class WebhookSender:
    """Sends to one receiver, over connections that it keeps."""

    def __init__(self, certificates: ssl.SSLContext):
        # Proxies of the environment, redirects and cookies are left out: what is sent goes to the
        # address in the settings and nowhere else.
        self._client = httpx2.AsyncClient(
            verify=certificates, trust_env=False, follow_redirects=False, timeout=None
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def send(
        self, hook: HookConfig, id: str, body: bytes, now: float, within: float
    ) -> DeliveryOutcome:
        """`within` seconds the answer must be there. Raises nothing for what a receiver can do
        wrong."""
        headers = signed(hook.secret.get_secret_value(), id, now, body)
        headers |= {"content-type": "application/json", "user-agent": "hubbub-webhooks"}
        try:
            async with asyncio.timeout(within):
                async with self._client.stream(
                    "POST", hook.url, content=body, headers=headers
                ) as response:
                    text = await _beginning(response)
        except TimeoutError:
            return DeliveryOutcome(fine=False, outcome=f"no answer within {within:g} s")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            return DeliveryOutcome(fine=False, outcome=f"{type(error).__name__}: {error}")
        finally:
            self._client.cookies.clear()
        code = response.status_code
        if 200 <= code < 300:
            return DeliveryOutcome(fine=True, outcome=str(code))
        wait = _wait(response.headers.get("retry-after", ""), now)
        return DeliveryOutcome(
            fine=False, outcome=f"{code} {text}".rstrip(), final=code == GONE, wait=wait
        )


async def _beginning(response: httpx2.Response) -> str:
    """Some of the answer, as one line."""
    read = b""
    async for part in response.aiter_raw(MOST_READ):
        read += part
        if len(read) >= MOST_READ:
            break
    text = read[:MOST_READ].decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _wait(told: str, now: float) -> float:
    """Of `Retry-After`: seconds, or a date."""
    if told.isascii() and told.isdecimal() and len(told) < 10:
        return float(told)
    try:
        when = parsedate_to_datetime(told)
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now)


DISK_S = 5.0
"""Seconds until it goes on when the disk has refused."""
QUIET_S = 3600
"""Seconds in which owners hear of the same trouble of a hook once."""
FORGET_EVERY = 100
"""After so many events what is old enough is forgotten."""


class Courier:
    """Of all hooks. It works only while there is something to send, and sleeps by the host's
    alarms, under the hooks' names: tell it of them with `rung`."""

    def __init__(self, host: Host, config: WebhooksConfig, random: Callable[[], float]):
        self._host, self._random, self._deliveries = host, random, DeliveryRepository(host)
        self._senders: dict[str, WebhookSender] = {}
        self._certificates: ssl.SSLContext | None = None
        self.running: dict[str, asyncio.Task[object] | None] = {}
        """By hook: what sends its events now; None: it is about to begin."""
        self._news: set[str] = set()
        """Hooks that have got another event while something is sent to them."""
        self._waiting: Counter[str] = Counter()
        self._until: dict[str, float] = {}
        """By hook: when its first event is tried again."""
        self._since = 0
        self._use(config)

    def _use(self, config: WebhooksConfig) -> None:
        self._config = config
        self._hooks = {hook.name: hook for hook in config.hooks}

    def use(self, config: WebhooksConfig) -> None:
        """Other settings: a new address may answer at once."""
        before = self._hooks
        self._use(config)
        for name, hook in self._hooks.items():
            if before.get(name) != hook:
                self._host.spawn(self._at_once(name))

    async def _at_once(self, name: str) -> None:
        await self._host.keep([at_once(name)])
        self.rung(name)

    async def start(self) -> None:
        """Go on with what waits."""
        self._waiting.update(await self._deliveries.counts("waiting"))
        for name in self._hooks:
            if self._waiting[name]:
                self._kick(name)

    async def stop(self) -> None:
        tasks = [task for task in self.running.values() if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for sender in self._senders.values():
            await sender.close()

    def added(self, name: str) -> None:
        """An event is about to be durable, or is."""
        self._waiting[name] += 1
        self._kick(name)

    def rung(self, name: str) -> None:
        """The time has come for which it has slept."""
        self._until.pop(name, None)
        self._kick(name)

    def _too_many(self, name: str) -> bool:
        """With some air, so that not every event of a dead receiver drops another one."""
        most = self._config.most_waiting
        return self._waiting[name] > most + most // 50

    def _kick(self, name: str) -> None:
        """There may be something to do for a hook: one thing at a time is done for each."""
        if name in self.running:
            self._news.add(name)
        elif self._until.get(name, 0.0) <= self._host.now() or self._too_many(name):
            self.running[name] = None
            self._host.spawn(self._run(name))

    async def _run(self, name: str) -> None:
        self.running[name] = asyncio.current_task()
        try:
            await self._work(name)
        except StoreUnavailable:
            self._wait_until(name, self._host.now() + DISK_S)
        finally:
            del self.running[name]
            self._news.discard(name)

    async def _work(self, name: str) -> None:
        """Send what waits, the oldest first, until nothing does or the first must wait."""
        self._news.add(name)
        while hook := self._hooks.get(name):
            if name in self._news:
                self._news.discard(name)
                await self._host.keep(())  # after this, what was written before is there to be read
            if self._too_many(name):
                await self._trim(name)
            row = await self._deliveries.first(name)
            if row is not None and row.due > self._host.now() and name not in self._news:
                self._wait_until(name, row.due)
                return
            if row is None and name not in self._news:
                self._waiting[name] = 0
                return
            if row is not None and row.due <= self._host.now():
                await self._send(hook, row)

    def _wait_until(self, name: str, due: float) -> None:
        self._until[name] = due
        self._host.at(due, name)

    async def _send(self, hook: HookConfig, row: DeliveryRow) -> None:
        sender = await self._sender(hook.name)
        body = body_of(row, await self._data(hook, row))
        answer = await sender.send(hook, row.id, body, self._host.now(), self._config.timeout)
        tried = row.attempts + 1
        if answer.fine:
            await self._done(row, "sent", answer)
        elif answer.final or tried >= self._config.attempts:
            await self._done(row, "failed", answer)
            self._tell(hook.name, "gave up", f"an event was given up ({answer.outcome})")
        else:
            due = self._host.now() + self._delay(tried, answer.wait)
            await self._host.keep([postponed(row, due, answer.outcome)])

    async def _done(self, row: DeliveryRow, state: State, answer: DeliveryOutcome) -> None:
        await self._host.keep([done(row, state, answer.outcome)])
        self._waiting[row.hook] -= 1
        self._since += 1
        if self._since >= FORGET_EVERY:
            self._since = 0
            await self._deliveries.forget(row.hook, self._config.kept)

    def _delay(self, tried: int, wanted: float) -> float:
        """Seconds until the next attempt: half of them fixed, half of them chance, so that many
        hubs do not come as one."""
        config = self._config
        longest = min(config.longest_retry, config.first_retry * 2.0 ** min(tried - 1, 32))
        return max(longest * (0.5 + 0.5 * self._random()), min(wanted, config.longest_retry))

    async def _data(self, hook: HookConfig, row: DeliveryRow) -> Mapping[str, JsonValue]:
        if row.seq is None:
            data: Mapping[str, JsonValue] = json.loads(row.data or "{}")
            return data
        [message] = await self._host.log(row.seq - 1, 1)
        return message_data(message, content=hook.content)

    async def _sender(self, name: str) -> WebhookSender:
        if name not in self._senders:
            if self._certificates is None:
                # Reading the certificates of the system takes a while.
                self._certificates = await asyncio.to_thread(ssl.create_default_context)
            self._senders[name] = WebhookSender(self._certificates)
        return self._senders[name]

    async def _trim(self, name: str) -> None:
        dropped = await self._deliveries.trim(name, self._config.most_waiting)
        self._waiting[name] = min(self._waiting[name], self._config.most_waiting)
        if dropped:
            self._tell(name, "dropped", f"{dropped} events were dropped: too many are waiting")

    def _tell(self, name: str, code: str, what: str) -> None:
        """Owners, once in an hour."""
        text = f"The webhook {name}: {what}; see `hubbub webhooks deliveries {name}`"
        hour = int(self._host.now() // QUIET_S)
        self._host.tell_owners(text, {"hook": name, "what": code}, f"{name}:{code}:{hour}")
