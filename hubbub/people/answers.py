"""What comes of a message: the answers of the agents that it woke, as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from hubbub.client import Client, Disconnected
from hubbub.errors import OperationError
from hubbub.people.figures import SHELL, outcome_words
from hubbub.people.names import label
from hubbub.people.oversight import approval_words
from hubbub.people.text import one_line
from hubbub.protocol import thread_ids
from hubbub.protocol.control import Approvals
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import (
    InteractionPage,
    Receipt,
    Receipts,
    SendResult,
    ThreadPage,
)

__all__ = ["Answers"]

NOTICE_S = 2.0
"""Seconds that the hub may take, after the last turn, to say why there is no answer."""
LOOK_S = 0.5
"""Seconds between two looks at what goes on in threads of others: no event tells of its end."""


class Answers:
    """Follows a message until every turn that it started has ended, or waits for a person: also
    the later ones of its interaction, as when an agent answers with the result of another.

    The client must have joined before the message was sent, with `latest`.
    """

    def __init__(
        self,
        client: Client,
        sent: SendResult,
        *,
        answered: Callable[[Message], None] = lambda message: None,
        writing: Callable[[str, str], None] = lambda agent, text: None,
    ):
        """`answered` is given each answer; `writing` an agent, and what its model has written so
        far of the answer that comes next."""
        self._client, self._sent = client, sent
        self._answered, self._writing = answered, writing
        self.agents = frozenset(sent.queued)
        """Those that the message woke."""
        self.messages: list[Message] = []
        """Their answers, in the order of the log."""
        self.receipts: dict[str, Receipt] = {}
        """What became of the message with each agent, as it was last asked."""
        self._why = ""
        self._approval = ""
        self._over = not self.agents
        self._elsewhere = False
        """Whether the agents' own turns have ended, and others of the interaction have not."""

    @property
    def question(self) -> str:
        """The id of the message."""
        return self._sent.id

    @property
    def reason(self) -> str:
        """Why there is no answer, or no whole one; empty if there is one."""
        if self._approval:
            return self._approval
        if self.messages:
            return ""
        if not self.agents:
            return "no agent was woken by this"
        ends = [f"{r.participant} {outcome_words(r.outcome)}" for r in self.receipts.values()]
        return self._why or f"there is no answer: {', '.join(ends) or 'it is not known why'}"

    async def wait(self) -> None:
        """Until it is over. Raises `OperationError`, and `ConnectionLost` if the hub has gone for
        good."""
        began = False
        while not (self._over or self._approval):
            try:
                async with asyncio.timeout(LOOK_S if self._elsewhere else None):
                    item = await anext(self._client.events())
            except TimeoutError:
                await self._look()
                continue
            if isinstance(item, Ready):
                if began:  # what was said without a connection is not sent again
                    await self._look()
                began = True
            else:
                await self._take(item)
        if not (self.messages or self._why or self._approval) and self.agents:
            with suppress(TimeoutError):
                async with asyncio.timeout(NOTICE_S):
                    while not self._why:
                        await self._take(await anext(self._client.events()))
        if self.messages:
            thread = self._sent.thread_id
            last = max((m.tseq for m in self.messages if m.thread_id == thread), default=0)
            if last:
                await self._client.call("mark_read", thread=thread, upto=last)

    async def stop(self) -> None:
        """End the turns that still run."""
        await self._read_receipts()
        for receipt in self.receipts.values():
            if receipt.turn is not None and receipt.state != "ended":
                with suppress(OperationError):  # it has ended meanwhile
                    await self._client.call("stop", scope="turn", target=receipt.turn)

    # What arrives -----------------------------------------------------------------------------

    async def _take(self, item: Ready | Event | Signal | Disconnected) -> None:
        match item:
            case Event(message=message) if self._answers(message):
                self._note(message)
                await self._look()
            case Event(message=message) if message.sender_kind == "system":
                await self._notice(message)
            case Signal(type="turn_ended", data={"agent": str(agent)}) if agent in self.agents:
                await self._look()
            case Signal(type="partial", sender=str(agent), data={"text": str(text)}):
                if agent in self.agents and self._here(item.thread_id):
                    self._writing(agent, text)

    def _here(self, thread_id: str | None) -> bool:
        """Whether a thread is that of the message, or hangs under it."""
        return thread_ids.root(thread_id or "") == thread_ids.root(self._sent.thread_id)

    def _answers(self, message: Message) -> bool:
        """Whether a message answers; others may be answered in the same thread meanwhile."""
        question = self._sent.message
        if (
            message.sender_id not in self.agents
            or message.seq < question.seq
            or message.amends is not None
            or not self._here(message.thread_id)
        ):
            return False
        if message.cause_id is None:  # an agent that does not say what it answers
            return message.type == "direct"
        turns = {receipt.turn for receipt in self.receipts.values()}
        return message.interaction_id == question.interaction_id or message.cause_id in turns

    def _note(self, message: Message) -> None:
        if all(known.id != message.id for known in self.messages):
            self.messages.append(message)
            self._answered(message)

    async def _notice(self, message: Message) -> None:
        """The hub says why there is no answer, or what an agent waits for."""
        match message.content:
            case {"messages": list(about)} if self._sent.id in about:
                self._why = one_line(message.text)
            case {"code": "approval", "approval": str(id), "agent": str(agent)}:
                if agent in self.agents and self._here(message.thread_id):
                    self._approval = await self._asks(id) or one_line(message.text)

    async def _asks(self, id: str) -> str:
        """What an agent asks for, and how to decide; empty if this person may not see it."""
        value = await self._client.call("list_approvals", state="pending")
        found = Approvals.model_validate(value).approvals
        me = self._client.participant
        lines = [
            line
            for each in found
            if each.id == id
            for line in approval_words(each, lambda thread: label(thread, me), SHELL)
        ]
        if lines:
            where = SHELL.name(label(self._sent.thread_id, me))
            way = SHELL(f"messages list --thread {where}")
            lines.append(f"   the answer stands in {way} then")
        return "\n".join(lines)

    async def _look(self) -> None:
        """Whether it is over; then, what was said without an event here."""
        await self._read_receipts()
        # An agent that keeps no records has no turn that ends: it has answered when it has spoken.
        spoken = {message.sender_id for message in self.messages}
        over = [
            r.state == "ended" or (r.state == "pending" and r.participant in spoken)
            for r in self.receipts.values()
        ]
        self._elsewhere = all(over) and await self._goes_on()
        if self._elsewhere or not all(over):
            return
        self._over = True
        page = await self._client.call("read_thread", thread=self._sent.thread_id)
        for message in ThreadPage.model_validate(page).messages:
            if self._answers(message):
                self._note(message)

    async def _goes_on(self) -> bool:
        """Whether anything of the interaction is not over."""
        after, id = None, self._sent.message.interaction_id
        while True:
            value = await self._client.call("read_interaction", id=id, after=after)
            page = InteractionPage.model_validate(value)
            if page.open or not page.more:
                return page.open
            after = page.upto

    async def _read_receipts(self) -> None:
        value = await self._client.call("read_receipts", id=self._sent.id)
        found = Receipts.model_validate(value).receipts
        self.receipts = {r.participant: r for r in found if r.participant in self.agents}
