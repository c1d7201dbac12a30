"""The answers to a message by the agents that it woke, as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

from hubbub.client import Client, Disconnected
from hubbub.errors import OperationError
from hubbub.people.figures import SHELL, delivery_notes, outcome_text
from hubbub.people.names import label
from hubbub.people.oversight import approval_lines
from hubbub.people.text import one_line
from hubbub.protocol import thread_ids
from hubbub.protocol.control import Approval, Approvals
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
"""Seconds to wait, after the last turn, for the hub's notice of why there is no answer."""
POLL_S = 0.5
"""Seconds between polls of turns in threads of others, whose end sends no event."""


class Answers:
    """Follows a message until every turn of its interaction has ended or waits for a person. This
    includes later turns, as when an agent answers with the result of another.

    The client must have joined before the message was sent, with the cursor `latest`.
    """

    def __init__(
        self,
        client: Client,
        sent: SendResult,
        *,
        answered: Callable[[Message], None] = lambda message: None,
        writing: Callable[[str, str], None] = lambda agent, text: None,
    ):
        """`answered` is called with each answer; `writing` with an agent and the text of its answer
        in progress."""
        self._client, self._sent = client, sent
        self._answered, self._writing = answered, writing
        self.agents = frozenset(sent.queued)
        """The agents that the message woke."""
        self.messages: list[Message] = []
        """Their answers, in the order of the log."""
        self.receipts: dict[str, Receipt] = {}
        """The latest receipt of each agent."""
        self._why = ""
        self._down: set[str] = set()
        """The agents that were found not to run since."""
        self._approval = ""
        self._is_done = not self.agents
        self._has_other_turns = False
        """Whether the agents' own turns have ended, but others of the interaction have not."""

    @property
    def question(self) -> str:
        """The id of the message."""
        return self._sent.id

    @property
    def reason(self) -> str:
        """Why the answer is missing or incomplete; empty if there is one."""
        if self._approval:
            return self._approval
        if self.messages:
            return ""
        if not self.agents:
            return "; ".join(delivery_notes(self._sent, SHELL)) or "this message woke no agent"
        ends = [f"{r.participant} {outcome_text(r.outcome)}" for r in self.receipts.values()]
        return self._why or f"no answer: {', '.join(ends) or 'reason unknown'}"

    async def wait(self) -> None:
        """Wait for all answers. Raises `OperationError`, and `ConnectionLost` if the hub closed
        the connection for good."""
        is_connected = False
        while not (self._is_done or self._approval):
            try:
                async with asyncio.timeout(POLL_S if self._has_other_turns else None):
                    item = await anext(self._client.events())
            except TimeoutError:
                await self._check()
                continue
            if isinstance(item, Ready):
                if is_connected:  # messages sent during a disconnection are not delivered again
                    await self._check()
                is_connected = True
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
        """Stop the turns that are still running."""
        await self._read_receipts()
        for receipt in self.receipts.values():
            if receipt.turn is not None and receipt.state != "ended":
                with suppress(OperationError):  # it ended in the meantime
                    await self._client.call("stop", scope="turn", target=receipt.turn)

    # What arrives -----------------------------------------------------------------------------

    async def _take(self, item: Ready | Event | Signal | Disconnected) -> None:
        match item:
            case Event(message=message) if self._answers(message):
                if message.cause_id == self.question:
                    await self._read_receipts()
                if not self._is_aside(message):
                    self._note(message)
                await self._check()
            case Event(message=message) if message.sender_kind == "system":
                await self._notice(message)
            case Signal(type="turn_ended", data={"agent": str(agent)}) if agent in self.agents:
                await self._check()
            case Signal(type="partial", sender=str(agent), data={"text": str(text)}):
                if agent in self.agents and self._here(item.thread_id):
                    self._writing(agent, text)
            case Signal(type="approval", data={"state": "pending"}):
                await self._note_request(Approval.model_validate(item.data))

    def _here(self, thread_id: str | None) -> bool:
        """Whether a thread is the message's thread or a reply thread under it."""
        return thread_ids.root(thread_id or "") == thread_ids.root(self._sent.thread_id)

    def _answers(self, message: Message) -> bool:
        """Whether a message answers this one; the agents may also answer others in the thread."""
        question = self._sent.message
        if (
            message.sender_id not in self.agents
            or message.seq < question.seq
            or message.amends is not None
            or not self._here(message.thread_id)
        ):
            return False
        if message.cause_id is None:  # an agent that does not report causes
            return message.type == "direct"
        turns = {receipt.turn for receipt in self.receipts.values()}
        return message.interaction_id == question.interaction_id or message.cause_id in turns

    def _is_aside(self, message: Message) -> bool:
        """Whether an agent that records its turns posts this beside its turn, as its helpers do: an
        answer names the turn as its cause."""
        receipt = self.receipts.get(message.sender_id)
        records = receipt is not None and (
            receipt.state == "running" or receipt.outcome is not None
        )
        return records and message.cause_id == self.question

    def _note(self, message: Message) -> None:
        if all(ids.id != message.id for ids in self.messages):
            self.messages.append(message)
            self._answered(message)

    async def _notice(self, message: Message) -> None:
        """Note the hub's notice of why there is no answer, or of an approval."""
        match message.content:
            case {"messages": list(about), **more} if self._sent.id in about:
                self._why = one_line(message.text)
                if more.get("code") == "agent_down":
                    self._down.add(str(more["agent"]))
                    await self._check()
            case {"code": "approval", "turn": str(turn), "agent": str(agent), **more}:
                is_delegated = more.get("message") == self._sent.id
                if is_delegated or (agent in self.agents and self._here(message.thread_id)):
                    self._approval = await self._approval_text(turn) or one_line(message.text)

    async def _note_request(self, approval: Approval) -> None:
        """Note the request of any turn of the interaction, such as one of delegated work."""
        if approval.asked_at < self._sent.message.sent_at:
            return
        async for page in self._pages():
            if any(turn.id == approval.turn for turn in page.turns):
                self._approval = await self._approval_text(approval.turn)
                return

    async def _approval_text(self, turn: str) -> str:
        """The requests of a turn and how to decide them; empty if this person may not see them."""
        value = await self._client.call("list_approvals", state="pending")
        approvals = reversed(Approvals.model_validate(value).approvals)
        me = self._client.participant
        lines = [
            line
            for each in approvals
            if each.turn == turn
            for line in approval_lines(each, lambda thread: label(thread, me), SHELL)
        ]
        if lines:
            where = SHELL.name(label(self._sent.thread_id, me))
            way = SHELL(f"messages list --thread {where}")
            lines.append(f"   then read the answer with `{way}`")
        return "\n".join(lines)

    async def _check(self) -> None:
        """Check whether all turns have ended; if so, read the answers that sent no event."""
        await self._read_receipts()
        # An agent that records no turns is done when it has answered.
        answered = {message.sender_id for message in self.messages}
        ended = [
            r.state == "ended"
            or (r.state == "pending" and r.participant in answered)
            or r.participant in self._down
            for r in self.receipts.values()
        ]
        # The hub's notice about the only agent says that no other will answer in its place.
        concluded = (bool(self._why) and len(self.agents) == 1) or self.agents <= self._down
        self._has_other_turns = all(ended) and not concluded and await self._is_open()
        if self._has_other_turns or not all(ended):
            return
        self._is_done = True
        thread = self._sent.thread_id
        replies = thread_ids.reply_thread(thread, self._sent.seq)
        messages = [*await self._latest(thread), *await self._latest(replies)]
        for message in sorted(messages, key=lambda message: message.seq):
            if self._answers(message) and not self._is_aside(message):
                self._note(message)

    async def _latest(self, thread: str) -> Sequence[Message]:
        """The latest messages of a thread; none if it does not exist."""
        with suppress(OperationError):
            page = await self._client.call("read_thread", thread=thread)
            return ThreadPage.model_validate(page).messages
        return ()

    async def _is_open(self) -> bool:
        """Whether the interaction has open turns."""
        async for page in self._pages():
            if page.open:
                return True
        return False

    async def _pages(self) -> AsyncIterator[InteractionPage]:
        """The interaction, as this person may see it."""
        after, id, more = None, self._sent.message.interaction_id, True
        while more:
            value = await self._client.call("read_interaction", id=id, after=after)
            page = InteractionPage.model_validate(value)
            yield page
            after, more = page.upto, page.more

    async def _read_receipts(self) -> None:
        value = await self._client.call("read_receipts", id=self._sent.id)
        receipts = Receipts.model_validate(value).receipts
        self.receipts = {r.participant: r for r in receipts if r.participant in self.agents}
