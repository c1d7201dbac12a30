"""The client of a person who asks agents through another protocol.

A question is one message in the conversation's thread. Its answer is everything the agent sends in
response until its turn ends. At most one question at a time waits in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from weakref import WeakValueDictionary

from pydantic import JsonValue

from hubbub.client import Client, Incoming
from hubbub.config.problems import nearest
from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.interop.asking.conversations import (
    Conversation,
    Conversations,
    content_of,
    input_of,
    text_of,
)
from hubbub.interop.asking.question import Question, QuestionFailed
from hubbub.interop.asking.request import InboundRequest, UserInput
from hubbub.interop.asking.uploads import attached
from hubbub.interop.request_clients import RequestClient
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message, Participant
from hubbub.protocol.operations import Participants, Receipt, Receipts, SendResult, ThreadPage
from hubbub.waiting import cancel
from hubbub.wording import shortened

__all__ = ["Asker", "unknown_model"]

_KEY_REUSED = "this key (Idempotency-Key) was used for another request"
MARK_S = 2.0
"""Delay, in seconds, before delivered answers are marked as read: each mark is a write."""
MAX_ANSWERS = 50
"""Messages after a question among which its answer is looked for."""
MAX_USERS = 1000
"""Users cached with their conversations. The hub has all of them."""


class Asker(RequestClient):
    """A person who asks agents by requests."""

    def __init__(self, client: Client):
        self._me = client.participant
        self._conversations = Conversations(self._me)
        self._locks = WeakValueDictionary[str, asyncio.Lock]()
        """By thread, or by agent and user before there is a thread."""
        self._users: dict[tuple[str, str], str] = {}
        """Threads by agent and user."""
        self._keys: dict[str, Question] = {}
        """Running questions by idempotency key."""
        self._running: dict[str, Question] = {}
        """By thread."""
        self._agents = frozenset[str]()
        """Names of agents, cached by `check`."""
        self._read_marks: dict[str, int] = {}
        """By thread: the last delivered `tseq`, until the hub has it."""
        self._tasks: set[asyncio.Task[None]] = set()
        super().__init__(client)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self._conversations.load(self.client.ready.threads)
        try:
            async with super().serving():
                yield
        finally:
            await cancel(*self._tasks)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Asking -------------------------------------------------------------------------------------

    async def agents(self) -> Sequence[Participant]:
        """All agents. Raises `OperationError` and `ConnectionLost`."""
        value = await self.client.call("list_participants")
        participants = Participants.model_validate(value).participants
        return [each for each in participants if each.kind == "agent"]

    async def check(self, model: str) -> None:
        """Raises `QuestionFailed` if there is no such agent, and the errors of `agents`."""
        if model in self._agents:
            return
        agents = await self.agents()
        self._agents = frozenset(agent.id for agent in agents)
        if model not in self._agents:
            raise unknown_model(model, agents)

    async def ask(self, request: InboundRequest, key: str, thread: str) -> Question:
        """Ask, in the conversation that the request continues.

        `key` is an idempotency key, or empty. `thread` names the thread; empty: find it from the
        request. Raises `QuestionFailed`, `OperationError` and `ConnectionLost`.
        """
        key = _digest(self._me, key) if key else ""
        if (earlier := self._keys.get(key)) is not None and not earlier.is_abandoned:
            if earlier.request != request:
                raise QuestionFailed(409, "cid_conflict", _KEY_REUSED)
            return earlier
        conversation = await self._conversation(request, thread, key)
        question = Question(request, conversation, key)
        if key:
            self._keys[key] = question
        conversation.is_busy = True
        self._spawn(self._run_question(question))
        return question

    async def _conversation(self, request: InboundRequest, thread: str, key: str) -> Conversation:
        if request.previous:
            message = await self.client.call("read_message", id=request.previous)
            thread = Message.model_validate(message).thread_id
        if thread:
            named = thread_ids.canonical(thread, self._me) or ""
            if thread_ids.root(named) != thread_ids.direct((self._me, request.model)):
                reason = f"{thread[:100]!r} is not a thread of yours with {request.model[:64]!r}"
                raise QuestionFailed(404, "unknown_thread", reason)
            return self._conversations.get_or_create(request.model, named)
        if request.user:
            named = self._users.get((request.model, request.user), "")
            return (
                self._conversations.get_or_create(request.model, named)
                if named
                else Conversation(request.model)
            )
        while (found := self._conversations.find(request, key)) is not None:
            if found.is_loaded:
                return found
            value = await self.client.call("read_thread", thread=found.thread_id, limit=100)
            self._conversations.reload(found, ThreadPage.model_validate(value).messages)
        return Conversation(request.model)

    async def _run_question(self, question: Question) -> None:
        """Send the question and wait until it is answered."""
        request = question.request
        try:
            async with self._lock(
                f"{request.model} {request.user}" if request.user else question.key
            ):
                if question.is_awaited and not question.conversation.thread_id:
                    await self._open_thread(question)
                async with self._lock(question.conversation.thread_id):
                    if question.is_awaited:
                        await self._answer(question)
                    else:  # the caller disconnected while the question was queued
                        question.fail(QuestionFailed(499, "gone", "the caller disconnected"))
        except HubbubError as error:
            question.fail(QuestionFailed.from_error(error))
        finally:
            question.conversation.is_busy = False
            # The hub has what was answered, and a failed question can be retried.
            if self._keys.get(question.idempotency_key) is question:
                del self._keys[question.idempotency_key]
            if self._running.get(question.conversation.thread_id) is question:
                del self._running[question.conversation.thread_id]

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _answer(self, question: Question) -> None:
        conversation = question.conversation
        self._running[conversation.thread_id] = question
        asked = conversation.question if self._is_repeated(question) else None
        if asked is not None and not await self._ended_silently(question, asked):
            question.message = asked
            for message in conversation.answers:
                question.add_message(message)
            await self._check_done(question)
            await question.done.wait()
            return
        sent = await self._post(question)
        await self._check_woken(question, sent)
        question.notify()
        if not question.is_awaited:
            await self.stop_if_abandoned(question)
        await question.done.wait()

    def _is_repeated(self, question: Question) -> bool:
        """Whether the question is the last one in the thread."""
        conversation, request = question.conversation, question.request
        if conversation.question is None or request.user:
            return False
        if len(request.groups) > 1:
            return conversation.is_repeated_by(request, question.idempotency_key)
        last = next(key for key in reversed(conversation.keys) if key[0] == "asker")
        return conversation.can_repeat(question.idempotency_key) and last == request.new.key

    async def _open_thread(self, question: Question) -> None:
        """Open a conversation: post its title, which starts a reply thread for its messages."""
        request = question.request
        first_line = request.new.text.splitlines()[0] if request.new.text else "a conversation"
        key = _digest(self._me, request.model, request.user) if request.user else question.key
        sent = await self._send_once(
            request.model,
            "send_text_message",
            f"asked:{key}:open",
            {
                "to": request.model,
                "text": f"New conversation: {shortened(first_line, 100)}",
                "silent": True,
            },
        )
        thread_id = thread_ids.reply_thread(sent.thread_id, sent.seq)
        if request.user:
            self._users[request.model, request.user] = thread_id
            if len(self._users) > MAX_USERS:
                del self._users[next(iter(self._users))]
        question.conversation.is_busy = False
        question.conversation = self._conversations.get_or_create(request.model, thread_id)
        question.conversation.is_busy = True

    async def _post(self, question: Question) -> SendResult:
        """Send the question. If an earlier request with its key did that, it is sent again only if
        its turn ended without an answer."""
        cid = f"asked:{question.key}:say"
        attachments = await attached(self.client, question.request.new.files, question.key)
        while True:
            sent = await self._send_question(question, cid, attachments)
            last = question.conversation.question
            if last is None or last.seq < sent.seq:
                self._conversations.add(sent.message)
                if last is not None or not question.idempotency_key:
                    question.message = sent.message
                    return sent
            # An earlier request can have sent it.
            if not await self._ended_silently(question, sent.message):
                question.message = sent.message
                await self._read_answers(question)
                await self._check_done(question)
                return sent
            cid = f"asked:{question.key}:say:{sent.id}"

    async def _send_question(
        self, question: Question, cid: str, attachments: list[JsonValue]
    ) -> SendResult:
        """Send the message, or return the one already sent with this cid and content."""
        name, message = self._message(question)
        if attachments:
            message["attachments"] = attachments
        sent = await self._send_once(question.request.model, name, cid, message)
        if input_of(sent.message).key != question.request.new.key:
            raise QuestionFailed(409, "cid_conflict", _KEY_REUSED)
        if sent.thread_id != question.conversation.thread_id:
            del self._running[question.conversation.thread_id]
            self._running[sent.thread_id] = question
            question.conversation = self._conversations.get_or_create(
                question.request.model, sent.thread_id
            )
        return sent

    def _message(self, question: Question) -> tuple[str, dict[str, object]]:
        """The operation that sends the question, and its arguments."""
        request, conversation = question.request, question.conversation
        has_history = bool(conversation.keys) or thread_ids.depth(conversation.thread_id) == 0
        before = 0 if has_history or request.previous else len(request.groups) - 1
        content = content_of(request, before, question.idempotency_key)
        text = text_of(request, before)
        message: dict[str, object] = {"mode": "queue"}
        if request.new.results:
            message["untrusted"] = True
        if thread_ids.depth(conversation.thread_id) and not has_history:
            name, message["message_id"] = "reply", conversation.anchor
            message |= {"text": text} if content is None else {"text": text, "content": content}
        elif content is None:
            name = "send_text_message"
            message |= {"to": conversation.thread_id, "text": text}
        else:
            name = "send_message"
            message |= {"to": conversation.thread_id, "content": content}
            message["text_representation"] = text
        return name, message

    async def _send_once(
        self, agent: str, name: str, cid: str, message: Mapping[str, object]
    ) -> SendResult:
        """Send the message, or return the one already sent to the agent with this `cid`, even if it
        differs."""
        try:
            sent = SendResult.model_validate(await self.client.call(name, cid=cid, **message))
        except OperationError as error:
            if error.code != ErrorCode.CID_CONFLICT or "first" not in error.details:
                raise
            sent = SendResult.model_validate(error.details["first"])
        if thread_ids.root(sent.thread_id) != thread_ids.direct((self._me, agent)):
            raise QuestionFailed(409, "cid_conflict", _KEY_REUSED)
        return sent

    async def _check_woken(self, question: Question, sent: SendResult) -> None:
        """Raises `QuestionFailed` if the question wakes no agent, so that no answer will come."""
        agent = question.request.model
        why = sent.not_woken.get(agent)
        if why is not None and why != "taken_over":
            status = 429 if why.startswith(("budget", "daily", "loop", "breaker")) else 503
            raise QuestionFailed(status, why, f"{agent} was not woken: {why.replace('_', ' ')}")
        if agent in sent.absent:
            participant = next((each for each in await self.agents() if each.id == agent), None)
            if participant is not None and participant.down is not None:
                raise QuestionFailed(503, "down", f"{agent} {participant.down}")
            question.state = f"{agent} is not connected; waiting for it"

    # Ending -------------------------------------------------------------------------------------

    def mark_read(self, question: Question) -> None:
        """Mark the answer as delivered to the caller."""
        if question.messages:
            last = question.messages[-1]
            question.conversation.read = max(question.conversation.read, last.tseq)
            if not self._read_marks:
                self._spawn(self._send_read_marks())
            self._read_marks[last.thread_id] = last.tseq

    async def _send_read_marks(self) -> None:
        await asyncio.sleep(MARK_S)
        marks, self._read_marks = self._read_marks, {}
        for thread, upto in marks.items():
            with suppress(HubbubError):
                await self.client.call("mark_read", thread=thread, upto=upto)

    @asynccontextmanager
    async def waiting(self, question: Question) -> AsyncIterator[None]:
        """A context in which the caller waits for the answer."""
        try:
            with question.listening():
                yield
        finally:
            await self.stop_if_abandoned(question)

    async def history(self, agent: str, user: str) -> Sequence[Message]:
        """The last messages of the conversation named `user`, oldest first. Raises
        `OperationError`: `unknown_thread` if there are none."""
        request = InboundRequest(agent, [UserInput("a conversation")], user=user)
        question = Question(request, Conversation(agent), "")
        await self._open_thread(question)
        question.conversation.is_busy = False
        thread = question.conversation.thread_id
        page = await self.client.call("read_thread", thread=thread, limit=100)
        messages = ThreadPage.model_validate(page).messages
        for message in messages:
            self._conversations.add(message)
        return [message for message in messages if message.sender_kind != "system"]

    async def stop_if_abandoned(self, question: Question) -> None:
        """Stop the question's turn if no caller waits for the answer any more."""
        if question.is_awaited or question.done.is_set() or question.message is None:
            return
        question.is_abandoned = True
        with suppress(HubbubError):
            receipt = await self._receipt(question, question.message)
            if receipt is not None and receipt.turn is not None and receipt.state != "ended":
                reason = "the caller closed the connection"
                await self.client.call("stop", scope="turn", target=receipt.turn, reason=reason)

    # Incoming -----------------------------------------------------------------------------------

    def _on_lost(self, error: ConnectionLost) -> None:
        for question in list(self._running.values()):
            question.fail(QuestionFailed.from_error(error))

    def _handle(self, item: Incoming) -> None:
        match item:
            case Event(message=message):
                self._handle_message(message)
            case Signal(type="turn_ended", thread_id=str(thread)):
                if (question := self._running.get(thread)) is not None:
                    self._spawn(self._check_done(question))
            case Signal(
                type="partial", sender=agent, thread_id=str(thread), data={"text": str(text)}
            ):
                question = self._running.get(thread)
                if question is not None and question.request.model == agent:
                    question.update_partial(text)
            case Ready():  # messages sent while disconnected are not delivered again
                for question in self._running.values():
                    if question.message is not None:
                        self._spawn(self._check_done(question, read=True))

    def _handle_message(self, message: Message) -> None:
        self._conversations.add(message)
        question = self._running.get(message.thread_id) or next(
            (
                each
                for each in self._running.values()
                if each.message and each.message.interaction_id == message.interaction_id
            ),
            None,
        )
        if question is None or question.message is None:
            return
        if message.sender_kind == "system":
            question.handle_notice(message)
        elif _is_answer(question.request.model, question.message, message):
            question.add_message(message)
            if message.sent_by is not None or message.cause_id == question.message.id:
                question.finish()  # sent outside a turn: the answer is complete
            elif message.cause_id is None or not message.cause_id.startswith(
                f"{message.sender_id}-"
            ):
                self._spawn(self._check_done(question))  # an agent that records no turns

    async def _receipt(self, question: Question, asked: Message) -> Receipt | None:
        value = await self.client.call("read_receipts", id=asked.id)
        receipts = Receipts.model_validate(value).receipts
        return next((r for r in receipts if r.participant == question.request.model), None)

    async def _ended_silently(self, question: Question, asked: Message) -> bool:
        """Whether the turn of `asked`, an equal question, ended without an answer."""
        receipt = await self._receipt(question, asked)
        if receipt is None or receipt.state != "ended":
            return False
        messages = await self._messages_after(asked)
        return not any(_is_answer(question.request.model, asked, each) for each in messages)

    async def _check_done(self, question: Question, *, read: bool = False) -> None:
        """Complete the question if its turn has ended. `read`: also read missed messages."""
        if question.message is None:
            return  # not sent yet: an earlier turn in its thread has ended
        try:
            receipt = question.receipt = await self._receipt(question, question.message)
            if receipt is None or question.done.is_set():
                return
            ended = receipt.state == "ended" or (
                receipt.state == "pending" and bool(question.messages)
            )
            if read or (ended and not question.messages):
                await self._read_answers(question)
            if not ended:
                return
            if question.messages:
                question.finish()
            else:
                await question.fail_silent()
        except HubbubError as error:
            question.fail(QuestionFailed.from_error(error))

    async def _read_answers(self, question: Question) -> None:
        """Read answers from the thread, for which there was no event."""
        asked = question.message
        assert asked is not None, "the question was sent"
        for message in await self._messages_after(asked):
            if _is_answer(question.request.model, asked, message):
                question.add_message(message)

    async def _messages_after(self, asked: Message) -> Sequence[Message]:
        """The messages that followed a question in its thread."""
        before = asked.tseq + MAX_ANSWERS + 1
        page = await self.client.call(
            "read_thread", thread=asked.thread_id, before=before, limit=MAX_ANSWERS
        )
        return ThreadPage.model_validate(page).messages


def _is_answer(agent: str, first: Message, message: Message) -> bool:
    return (
        message.sender_id == agent
        and message.seq > first.seq
        and message.amends is None
        and message.type == "direct"
        and (
            message.interaction_id == first.interaction_id
            or (
                message.thread_id == first.thread_id
                and (message.cause_id is None or message.sent_by is not None)
            )
        )
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def unknown_model(name: str, agents: Sequence[Participant]) -> QuestionFailed:
    """The failure for an unknown agent."""
    hint = nearest(name, [agent.id for agent in agents])
    return QuestionFailed(404, "model_not_found", f"there is no agent {name[:64]!r}{hint}")
