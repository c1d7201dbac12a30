"""Brings events to their receivers: for each of them one at a time, the oldest first."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
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
from hubbub.mods.fields import time_of
from hubbub.mods.host import Host
from hubbub.mods.webhooks import repository
from hubbub.mods.webhooks.repository import DeliveryRepository, DeliveryRow
from hubbub.mods.webhooks.schemas import State
from hubbub.mods.webhooks.settings import HookConfig, WebhooksConfig
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Turn

__all__ = ["Courier", "Forged", "concerns", "reaches", "signed", "turn_data", "verify"]

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


ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_VERSION = "v1,"
_ENCODED = "whsec_"
"""Before a secret that is base64, as the specification writes them; others are taken as they
are."""
_LONGEST_ID = 256


class Forged(Exception):
    """The signature does not prove that the body is who it says it is from, or not now."""


def _key(secret: str) -> bytes:
    if secret.startswith(_ENCODED):
        try:
            return base64.b64decode(secret.removeprefix(_ENCODED), validate=True)
        except binascii.Error:
            pass  # a secret that only begins like one
    return secret.encode()


def _signature(secret: str, id: str, timestamp: str, body: bytes) -> str:
    signed = b".".join((id.encode(), timestamp.encode(), body))
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return _VERSION + base64.b64encode(digest).decode()


def signed(secret: str, id: str, now: float, body: bytes) -> dict[str, str]:
    """The headers that prove a body."""
    timestamp = str(int(now))
    return {ID: id, TIMESTAMP: timestamp, SIGNATURE: _signature(secret, id, timestamp, body)}


def verify(
    secret: str, headers: Mapping[str, str], body: bytes, now: float, tolerance: float
) -> str:
    """The id of an event whose signature is right, and at most `tolerance` seconds away from now.
    Names of headers are in lower case. Raises `Forged`, with a sentence for the sender."""
    id, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    given = headers.get(SIGNATURE, "").split()
    if not (id and timestamp and given):
        raise Forged(f"the headers {ID}, {TIMESTAMP} and {SIGNATURE} are needed")
    # With a full stop in the id, the same signature would prove another id, time and body.
    if "." in id or len(id) > _LONGEST_ID or not (timestamp.isascii() and timestamp.isdecimal()):
        raise Forged(f"{ID} or {TIMESTAMP} is not as it should be")
    right = _signature(secret, id, timestamp, body).encode()
    if not any(hmac.compare_digest(right, each.encode()) for each in given):
        raise Forged("the signature is wrong")
    if len(timestamp) > 15 or abs(int(timestamp) - now) > tolerance:
        raise Forged(f"{TIMESTAMP} is more than {tolerance:g} s away from now")
    return id


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


class Sender:
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
        self._senders: dict[str, Sender] = {}
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
        await self._host.keep([repository.at_once(name)])
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
            await self._host.keep([repository.postponed(row, due, answer.outcome)])

    async def _done(self, row: DeliveryRow, state: State, answer: DeliveryOutcome) -> None:
        await self._host.keep([repository.done(row, state, answer.outcome)])
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

    async def _sender(self, name: str) -> Sender:
        if name not in self._senders:
            if self._certificates is None:
                # Reading the certificates of the system takes a while.
                self._certificates = await asyncio.to_thread(ssl.create_default_context)
            self._senders[name] = Sender(self._certificates)
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
