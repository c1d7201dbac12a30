"""Joins the state to a client: what a person does becomes calls, what arrives changes the state."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from pydantic import BaseModel

from hubbub.cli.chat.commands import Mode
from hubbub.cli.chat.refusals import told
from hubbub.cli.chat.text import one_line
from hubbub.cli.chat.thread import Thread
from hubbub.cli.control.control import Control
from hubbub.cli.control.words import CHAT, kept_back
from hubbub.cli.full.outbox import Sending
from hubbub.cli.full.state import State
from hubbub.cli.workplace.news import news
from hubbub.cli.workplace.reacted import BelowMessages
from hubbub.cli.workplace.works import Work
from hubbub.client import Client
from hubbub.clock import Clock, SystemClock
from hubbub.errors import ConnectionLost, OperationError, UserError
from hubbub.ids import new_ulid, parse_message_id
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message, Quote
from hubbub.protocol.operations import (
    Channels,
    MentionPage,
    Receipts,
    SendResult,
    ThreadPage,
    Threads,
)
from hubbub.protocol.spending import Spending
from hubbub.protocol.turns import Turn

if TYPE_CHECKING:
    from hubbub.cli.workplace.told import Told
    from hubbub.cli.workplace.workplace import Workplace

__all__ = ["Engine", "View"]

PAGE = 50
"""Messages that are asked for at once."""
FAR = 20
"""Pages that are fetched to reach a message or the beginning of what is new."""
MENTIONS = 100
"""Mentions that are asked for at the start."""
M = TypeVar("M", bound=BaseModel)


class View(Protocol):
    """Where a person looks."""

    def refresh_soon(self) -> None:
        """The state has changed."""
        ...

    def tell(self, text: str, tone: str = "information") -> None:
        """Something that the program itself says; `tone` is information, warning or error."""
        ...


class Engine:
    """One person's client at work."""

    def __init__(self, client: Client, view: View, clock: Clock | None = None):
        self.state = State(client.participant)
        self.began = asyncio.Event()
        """The hub has told the state of the network."""
        self.control = Control(client, self.state, CHAT, here=True)
        self._workplace: Workplace | None = None
        self._client, self._view, self._clock = client, view, clock or SystemClock()
        self._outgoing: asyncio.Queue[Sending] = asyncio.Queue()
        self._tasks: asyncio.TaskGroup | None = None
        self._pages: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._left_unread: str | None = None

    async def run(self) -> None:
        """Follow the hub and send what is said, until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            self._tasks.create_task(self._follow())
            self._tasks.create_task(self._deliver())

    def now(self) -> float:
        """Monotonic seconds, as the state's times are."""
        return self._clock.monotonic()

    # Arriving ---------------------------------------------------------------------------------

    async def _follow(self) -> None:
        try:
            async for item in self._client.events():
                here = self.state.current
                self.state.apply(item, self.now())
                if isinstance(item, Ready):
                    self._ready(item)
                elif isinstance(item, Event):
                    await self._client.ack(item.seq)
                elif isinstance(item, Signal):
                    self._hear(item)
                if self.state.current != here and not isinstance(
                    item, Ready | Event
                ):  # a channel that was left in another window
                    self.open(self.state.current)
                self._view.refresh_soon()
        except ConnectionLost as lost:
            self.state.connection.lost = lost.reason or str(lost)
            self.state.connection.over = True
            self._view.refresh_soon()

    def _hear(self, signal: Signal) -> None:
        """Tell news of approvals, stops and take-overs, and the little of mods that is not seen."""
        self.state.reacted.hear(signal)
        told_of = news(signal, self.state.me, self.state.seen)
        if told_of is not None and (told_of.anywhere or told_of.thread_id == self.state.current):
            where = self.state.shown(told_of.thread_id)
            self._view.tell(f"{where}: {told_of.text}")
        lines = self.state.news(signal)
        if signal.type == "approval" and len(lines) > 1:
            self._view.tell(f"{lines[0]}; F2 shows it", "warning")
        else:
            for line in lines:
                self._view.tell(line, "warning")
        heard = self.state.overhear(signal)
        if heard is not None and heard.message.amends is None:
            where = self.state.shown(heard.message.thread_id)
            said = f"{heard.message.sender_id}: {one_line(heard.message.text)}"
            self._view.tell(f"{heard.agent} hears in {where}: {said}")

    def _ready(self, ready: Ready) -> None:
        self.state.network = self._client.network
        first = not self.began.is_set()
        self.began.set()
        if first or not ready.resumed:
            self.do(self._rest_of_threads(ready))
            self.open(self.state.current)

    async def _rest_of_threads(self, ready: Ready) -> None:
        """`ready` has the latest threads; the others, and mentions further back."""
        before = min((thread.last_seq for thread in ready.threads), default=0)
        more = before > 1
        while more:
            value = await self._client.call("list_threads", before=before, limit=200)
            page = Threads.model_validate(value)
            for summary in page.threads:
                self.state.summarised(summary)
                before = min(before, summary.last_seq)
            more = page.more and bool(page.threads)
        self.state.mentioned(await self.mentions())
        self._view.refresh_soon()

    # Threads ----------------------------------------------------------------------------------

    def open(self, thread_id: str) -> None:
        """Show a thread, and fetch what is missing of it."""
        self.state.open(thread_id)
        self._left_unread = None
        self.do(self._fill(thread_id))
        if thread_ids.kind_of(thread_id) == "channel":
            self.do(self.channels())
        self._view.refresh_soon()

    async def _fill(self, thread_id: str) -> None:
        """The last page, and those before it as far as something is new."""
        thread = self.state.thread(thread_id)
        wanted = self.state.new_from
        try:
            for n in range(FAR):
                start = thread.oldest
                known = len(thread.messages) >= PAGE or start == 1
                reached = wanted is None or start <= wanted + 1
                if (known and reached) or (n and not thread.more):
                    break
                await self._page(thread_id, start or None)
        finally:
            self.state.opened(thread_id)
            self._view.refresh_soon()
        await self._reactions(thread_id, thread.oldest, thread.head)

    def older(self) -> None:
        """Fetch the page before what is known of the open thread, unless one is on its way."""
        thread = self.state.thread(self.state.current)
        if thread.more and thread.oldest > 1 and not self._pages[thread.id].locked():
            self.do(self._older(thread))

    async def _older(self, thread: Thread) -> None:
        before = thread.oldest
        await self._page(thread.id, before)
        await self._reactions(thread.id, thread.oldest, before)

    async def _reactions(self, thread_id: str, first: int, last: int) -> None:
        """What stands below the messages of a part of a thread, if the network has reactions."""
        if not first or "list_reactions" not in self.state.offers:
            return
        found = await self._ask(
            BelowMessages, "list_reactions", thread=thread_id, first=first, last=last
        )
        self.state.reacted.learn(found.messages)
        self._view.refresh_soon()

    async def _page(self, thread_id: str, before: int | None) -> None:
        """A page of a thread. One that nobody has written to does not exist yet."""
        async with self._pages[thread_id]:
            try:
                page = await self._ask(
                    ThreadPage, "read_thread", thread=thread_id, before=before, limit=PAGE
                )
            except OperationError as exc:
                if exc.code != ErrorCode.UNKNOWN_THREAD:
                    raise
                self.state.thread(thread_id).more = False
            else:
                self.state.learn(page)
        self._view.refresh_soon()

    def looked_at(self) -> None:
        """The person sees the end of the open thread."""
        thread = self.state.thread(self.state.current)
        if thread.head > thread.read and not self.state.opening and self._left_unread != thread.id:
            answered = self.state.marking(thread.id, thread.head)
            asked = self._client.post("mark_read", thread=thread.id, upto=thread.head)
            asked.add_done_callback(answered)

    def mark_unread(self, message: Message) -> None:
        """Count a thread as unread from a message on; it stays so while it is open."""
        thread = self.state.thread(message.thread_id)
        answered = self.state.marking(thread.id, message.tseq - 1)
        self._left_unread = thread.id
        self.state.new_from = thread.read
        asked = self._client.post("mark_unread", thread=thread.id, since=message.tseq)
        asked.add_done_callback(answered)
        self._view.refresh_soon()

    # Mods -------------------------------------------------------------------------------------

    async def work(self, work: Work) -> Told:
        """Do what a person asks of mods. Raises `UserError`, `OperationError`."""
        if self._workplace is None:
            from hubbub.cli.workplace.workplace import Workplace  # half of all models of mods

            self._workplace = Workplace(self._client, self.state, self._carrying)
        answer = await self._workplace.do(work)
        if answer.spoken is not None:
            self.state.note(answer.spoken.message)
            self._noted(answer.spoken)
        self._view.refresh_soon()
        return answer

    def _carrying(self, so_far: str) -> None:
        self.state.carrying = so_far
        self._view.refresh_soon()

    # Speaking ---------------------------------------------------------------------------------

    def say(
        self,
        text: str,
        quote: Quote | None = None,
        thread_id: str | None = None,
        mode: Mode | None = None,
    ) -> None:
        """Send a text to a thread (None: the open one). Raises `UserError` where nobody may."""
        thread_id = thread_id or self.state.current
        if thread_ids.kind_of(thread_id) == "mod":
            raise UserError("only the network itself speaks here; choose another thread")
        self._send(Sending(new_ulid(), thread_id, text, quote, mode))

    def drop(self) -> list[Sending]:
        """Give up what the hub refused in the open thread; returns that."""
        refused = [s for s in self.state.outbox.of(self.state.current) if s.failed is not None]
        for sending in refused:
            self.state.outbox.done(sending.cid)
        self._view.refresh_soon()
        return refused

    def again(self) -> None:
        """Try once more what the hub refused in the open thread."""
        for sending in self.drop():
            self._send(replace(sending, cid=new_ulid(), failed=None))

    def _send(self, sending: Sending) -> None:
        self.state.outbox.add(sending)
        self._outgoing.put_nowait(sending)
        self._view.refresh_soon()

    async def _deliver(self) -> None:
        """Send what was said, one after the other: it shall stand in the log in this order."""
        while True:
            sending = await self._outgoing.get()
            operation, where = self.state.way_to(sending.thread_id)
            more: dict[str, object] = {"quote": sending.quote, "mode": sending.mode}
            given = {name: value for name, value in more.items() if value is not None}
            try:
                value = await self._client.call(
                    operation, cid=sending.cid, text=sending.text, **where, **given
                )
            except OperationError as exc:
                self.state.outbox.refused(sending.cid, told(exc))
            except ConnectionLost:
                return  # `_follow` says so
            else:
                self._sent(sending, SendResult.model_validate(value))
            self._view.refresh_soon()

    def _sent(self, sending: Sending, result: SendResult) -> None:
        self.state.sent(sending, result)
        self._noted(result)

    def _noted(self, result: SendResult) -> None:
        """One's own message stands in its thread: it is read, and what the hub says is told."""
        answered = self.state.marking(result.thread_id, result.tseq)
        asked = self._client.post("mark_read", thread=result.thread_id, upto=result.tseq)
        asked.add_done_callback(answered)
        if result.unresolved:
            names = ", ".join(f"@{name}" for name in result.unresolved)
            self._view.tell(f"nobody here is called {names}", "warning")
        for line in kept_back(result, CHAT):
            self._view.tell(line, "warning" if result.not_woken else "information")

    # Asking -----------------------------------------------------------------------------------

    async def message(self, message_id: str) -> Message:
        """A message, from what is known or from the hub, with what stands around it. Raises
        `OperationError`."""
        seq = parse_message_id(message_id) or 0
        found = self.state.message(seq)
        if found is None:
            found = await self._ask(Message, "read_message", id=message_id)
        thread = self.state.thread(found.thread_id)
        for _ in range(FAR):
            if found.tseq in thread.messages:
                break
            await self._page(thread.id, thread.oldest or None)
        return found

    async def mentions(self) -> tuple[Message, ...]:
        """The latest messages that mention this person, newest first."""
        return (await self._ask(MentionPage, "list_mentions", limit=MENTIONS)).messages

    async def receipts(self, message_id: str) -> Receipts:
        return await self._ask(Receipts, "read_receipts", id=message_id)

    async def spent(self, *, agent: str | None = None, thread: str | None = None) -> None:
        """Find out what an agent has spent today, or what was spent in a thread."""
        given = {"agent": agent} if agent is not None else {"thread": thread}
        try:
            found = await self._ask(Spending, "read_spending", **given)
        except OperationError:
            return  # nobody has written there yet, or it is no agent: there is nothing to tell
        self.state.spent[agent or thread or ""] = found.total
        self._view.refresh_soon()

    async def turn(self, turn_id: str) -> Turn:
        return await self._ask(Turn, "read_turn", id=turn_id)

    async def join(self, name: str) -> None:
        await self._client.call("join_channel", channel=name)
        await self._enter(name)

    async def create(self, name: str) -> None:
        await self._client.call("create_channel", name=name)
        await self._enter(name)

    async def _enter(self, name: str) -> None:
        self.state.joined(name)
        self.open(thread_ids.channel(name))

    async def channels(self) -> None:
        """Ask for the channels anew: what the hub tells of them comes a moment later."""
        found = await self._ask(Channels, "list_channels")
        self.state.channels = {channel.name: channel for channel in found.channels}
        self._view.refresh_soon()

    async def leave(self, name: str) -> None:
        await self._client.call("leave_channel", channel=name)
        self.state.parted(name)
        self._view.refresh_soon()

    async def _ask(self, shape: type[M], name: str, **args: object) -> M:
        return shape.model_validate(await self._client.call(name, cid=None, **args))

    # Work -------------------------------------------------------------------------------------

    def do(self, work: Awaitable[object]) -> asyncio.Task[None]:
        """Do something beside everything else; a refusal is told."""
        assert self._tasks is not None, "runs"
        return self._tasks.create_task(self._guarded(work))

    async def _guarded(self, work: Awaitable[object]) -> None:
        try:
            await work
        except (OperationError, UserError) as exc:
            self._view.tell(told(exc), "error")
        except ConnectionLost:
            return  # `_follow` says so
