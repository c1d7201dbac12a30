"""Brings events to their receivers: for each of them one at a time, the oldest first."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from hubbub.errors import StoreUnavailable
from hubbub.mods.host import Host
from hubbub.mods.webhooks import outbox
from hubbub.mods.webhooks.events import body_of, message_data
from hubbub.mods.webhooks.outbox import Outbox, Row
from hubbub.mods.webhooks.sending import Answer, Sender
from hubbub.mods.webhooks.settings import HookConfig, WebhooksConfig
from hubbub.mods.webhooks.words import State

__all__ = ["Courier"]

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
        self._host, self._random, self._outbox = host, random, Outbox(host)
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
        await self._host.keep([outbox.at_once(name)])
        self.rung(name)

    async def start(self) -> None:
        """Go on with what waits."""
        self._waiting.update(await self._outbox.waiting())
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
            row = await self._outbox.first(name)
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

    async def _send(self, hook: HookConfig, row: Row) -> None:
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
            await self._host.keep(outbox.postponed(row, due, answer.outcome))

    async def _done(self, row: Row, state: State, answer: Answer) -> None:
        await self._host.keep(outbox.done(row, state, answer.outcome))
        self._waiting[row.hook] -= 1
        self._since += 1
        if self._since >= FORGET_EVERY:
            self._since = 0
            await self._outbox.forget(row.hook, self._config.kept)

    def _delay(self, tried: int, wanted: float) -> float:
        """Seconds until the next attempt: half of them fixed, half of them chance, so that many
        hubs do not come as one."""
        config = self._config
        longest = min(config.longest_retry, config.first_retry * 2.0 ** min(tried - 1, 32))
        return max(longest * (0.5 + 0.5 * self._random()), min(wanted, config.longest_retry))

    async def _data(self, hook: HookConfig, row: Row) -> Mapping[str, JsonValue]:
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
        dropped = await self._outbox.trim(name, self._config.most_waiting)
        self._waiting[name] = min(self._waiting[name], self._config.most_waiting)
        if dropped:
            self._tell(name, "dropped", f"{dropped} events were dropped: too many are waiting")

    def _tell(self, name: str, code: str, what: str) -> None:
        """Owners, once in an hour."""
        text = f"The webhook {name}: {what}; see `hubbub webhook deliveries {name}`"
        hour = int(self._host.now() // QUIET_S)
        self._host.tell_owners(text, {"hook": name, "what": code}, f"{name}:{code}:{hour}")
