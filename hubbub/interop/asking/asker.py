"""One participant who asks: what it asks, and what comes of that.

A question is one message in the conversation's thread, and its answer what the agent says because
of it until its turn has ended. In one thread one question waits at a time.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from weakref import WeakValueDictionary

from pydantic import JsonValue

from hubbub.client import Client, Disconnected
from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.interop.asking.conversations import (
    Conversation,
    Conversations,
    content_of,
    said,
    text_of,
)
from hubbub.interop.asking.question import Failed, Question
from hubbub.interop.asking.request import InboundRequest, RequestFile, UserInput
from hubbub.interop.request_clients import RequestClient
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message, Participant
from hubbub.protocol.operations import Participants, Receipt, Receipts, SendResult, ThreadPage
from hubbub.wording import near, shortened

__all__ = ["Asker", "unknown_model"]

_OTHER = "this key (Idempotency-Key) was used for another request"
MARK_S = 2.0
"""Seconds after which the hub is told which answers were taken."""
MOST_KEYS = 1000
"""Idempotency keys that are remembered with their questions, and users with their conversations;
the hub knows all."""


class Asker(RequestClient):
    """A person who asks by requests."""

    def __init__(self, client: Client):
        self._me = client.participant
        self._conversations = Conversations(self._me)
        self._locks = WeakValueDictionary[str, asyncio.Lock]()
        """By what is asked in one after the other."""
        self._users: dict[tuple[str, str], str] = {}
        self._keys: dict[str, Question] = {}
        self._running: dict[str, Question] = {}
        """By thread."""
        self._agents = frozenset[str]()
        """Names of agents, as far as they were asked for."""
        self._read_upto: dict[str, int] = {}
        """By thread: what is taken, and not told to the hub."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost = False
        super().__init__(client)

    @property
    def lost(self) -> bool:
        return self._lost

    @asynccontextmanager
    async def staying(self) -> AsyncIterator[None]:
        self._conversations.begin(self.client.ready.threads)
        self._spawn(self._listen())
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Asking -------------------------------------------------------------------------------------

    async def agents(self) -> Sequence[Participant]:
        """All agents. Raises `OperationError` and `ConnectionLost`."""
        found = Participants.model_validate(await self.client.call("list_participants"))
        return [each for each in found.participants if each.kind == "agent"]

    async def check(self, model: str) -> None:
        """Raises `Failed` if there is no such agent, and what `agents` raises."""
        if model in self._agents:
            return
        agents = await self.agents()
        self._agents = frozenset(agent.id for agent in agents)
        if model not in self._agents:
            raise unknown_model(model, agents)

    async def ask(self, asked: InboundRequest, key: str, thread: str) -> Question:
        """Ask, in the conversation that the request goes on with. `key`: who asks again with it has
        asked once; `thread` names the thread, if it is not left to the request.

        Raises `Failed`, `OperationError` and `ConnectionLost`.
        """
        once = _digest(self._me, key) if key else ""
        if (known := self._keys.get(once)) is not None:
            if known.asked != asked:
                raise Failed(409, "cid_conflict", _OTHER)
            return known
        conversation = await self._conversation(asked, thread, once)
        question = Question(asked, conversation, once)
        if once:
            self._keys[once] = question
            while len(self._keys) > MOST_KEYS:
                del self._keys[next(iter(self._keys))]
        conversation.busy = True
        self._spawn(self._work(question))
        return question

    async def _conversation(self, asked: InboundRequest, thread: str, once: str) -> Conversation:
        if asked.previous:
            message = await self.client.call("read_message", id=asked.previous)
            thread = Message.model_validate(message).thread_id
        if thread:
            named = thread_ids.canonical(thread, self._me) or ""
            if thread_ids.root(named) != thread_ids.direct((self._me, asked.model)):
                words = f"{thread[:100]!r} is no thread of yours with {asked.model[:64]!r}"
                raise Failed(404, "unknown_thread", words)
            return self._conversations.of(asked.model, named)
        if asked.user:
            named = self._users.get((asked.model, asked.user), "")
            return (
                self._conversations.of(asked.model, named) if named else Conversation(asked.model)
            )
        found = self._conversations.find(asked, again=bool(once))
        return found or Conversation(asked.model)

    async def _work(self, question: Question) -> None:
        """Until it is answered."""
        asked = question.asked
        try:
            async with self._locked(f"{asked.model} {asked.user}" if asked.user else question.key):
                if question.awaited and not question.conversation.thread_id:
                    await self._open(question)
                async with self._locked(question.conversation.thread_id):
                    if question.awaited:
                        await self._answer(question)
                    else:  # who has asked has gone before its turn came
                        question.fail(Failed(499, "gone", "nobody waits for the answer"))
        except HubbubError as error:
            question.fail(Failed.of(error))
        finally:
            question.conversation.busy = False
            if question.failure is not None or question.asked.new.files:
                # What was not said may be asked anew, and files are large: the hub knows the rest.
                self._keys.pop(question.once, None)
            if self._running.get(question.conversation.thread_id) is question:
                del self._running[question.conversation.thread_id]

    def _locked(self, place: str) -> asyncio.Lock:
        """Within, nothing else is asked there."""
        return self._locks.setdefault(place, asyncio.Lock())

    async def _answer(self, question: Question) -> None:
        conversation = question.conversation
        self._running[conversation.thread_id] = question
        if self._repeats(question):
            question.message = conversation.question
            for message in conversation.answers:
                question.take(message)
            await self._look(question)
            if question.failure is None or question.messages:
                await question.over.wait()
                return
            question.failure = None  # its turn has ended without an answer: it is asked anew
            question.over.clear()
        sent = await self._say(question)
        await self._check_woken(question, sent)
        question.told()
        if not question.awaited:
            await self.left(question)
        await question.over.wait()

    def _repeats(self, question: Question) -> bool:
        """Whether it stands in the thread already, and nobody has taken its answer."""
        found, new = question.conversation, question.asked.new
        if found.question is None or not (found.unread or question.once) or question.asked.user:
            return False
        asker = next(key for key in reversed(found.keys) if key[0] == "asker")
        return asker == new.key

    async def _open(self, question: Question) -> None:
        """Begin a conversation: its title stands beside the others, its messages hang under it."""
        asked = question.asked
        first = asked.new.text.splitlines()[0] if asked.new.text else "a conversation"
        named = _digest(self._me, asked.model, asked.user) if asked.user else question.key
        sent = await self._once(
            "send_text_message",
            f"asked:{named}:open",
            {
                "to": asked.model,
                "text": f"New conversation: {shortened(first, 100)}",
                "silent": True,
            },
        )
        thread_id = thread_ids.reply_thread(sent.thread_id, sent.seq)
        if asked.user:
            self._users[asked.model, asked.user] = thread_id
            if len(self._users) > MOST_KEYS:
                del self._users[next(iter(self._users))]
        question.conversation.busy = False
        question.conversation = self._conversations.of(asked.model, thread_id)
        question.conversation.busy = True

    async def _say(self, question: Question) -> SendResult:
        asked, conversation = question.asked, question.conversation
        known = bool(conversation.keys) or thread_ids.depth(conversation.thread_id) == 0
        earlier = len(asked.groups) - 1
        before = 0 if known or asked.previous else earlier
        content, text = content_of(asked, before), text_of(asked, before)
        message: dict[str, object] = {"mode": "queue"}
        if asked.new.files:
            message["attachments"] = await self._attached(question)
        if asked.new.results:
            message["outside"] = True
        if thread_ids.depth(conversation.thread_id) and not known:
            name, message["message_id"] = "reply", conversation.anchor
            message |= {"text": text} if content is None else {"text": text, "content": content}
        elif content is None:
            name = "send_text_message"
            message |= {"to": conversation.thread_id, "text": text}
        else:
            name = "send_message"
            message |= {"to": conversation.thread_id, "content": content}
            message["text_representation"] = text
        sent = await self._sent(question, name, message)
        question.message = sent.message
        conversation = question.conversation
        if conversation.question is None or conversation.question.seq < sent.seq:
            self._conversations.take(sent.message)
        else:  # it was said before, and has perhaps been answered
            await self._read(question)
            await self._look(question)
        return sent

    async def _sent(self, question: Question, name: str, message: dict[str, object]) -> SendResult:
        """The message; the one that was sent before with the same key, if it says the same."""
        sent = await self._once(name, f"asked:{question.key}:say", message)
        if said(sent.message).key != question.asked.new.key:
            raise Failed(409, "cid_conflict", _OTHER)
        if sent.thread_id != question.conversation.thread_id:
            del self._running[question.conversation.thread_id]
            self._running[sent.thread_id] = question
            question.conversation = self._conversations.of(question.asked.model, sent.thread_id)
        return sent

    async def _once(self, name: str, cid: str, message: Mapping[str, object]) -> SendResult:
        """The message; the one that was sent before with this `cid`, whatever it says."""
        try:
            value = await self.client.call(name, cid=cid, **message)
        except OperationError as error:
            if error.code != ErrorCode.CID_CONFLICT or "first" not in error.details:
                raise
            return SendResult.model_validate(error.details["first"])
        return SendResult.model_validate(value)

    async def _attached(self, question: Question) -> list[JsonValue]:
        found: list[JsonValue] = []
        for number, file in enumerate(question.asked.new.files):
            uri = file.uri or await self._upload(file, f"asked:{question.key}:{number}")
            found.append({"name": file.name, "media_type": file.media_type, "uri": uri})
        return found

    async def _upload(self, file: RequestFile, cid: str) -> str:
        if not self.client.offers("begin_upload"):
            raise Failed(400, "no_files", "this network keeps no files: it needs the mod `files`")
        told = {"name": file.name, "size": len(file.data), "media_type": file.media_type}
        opened = await self._call("begin_upload", f"{cid}:begin", told)
        upload, chunk = str(opened["upload"]), int(str(opened["chunk"]))
        for at in range(0, len(file.data), chunk):
            data = base64.b64encode(file.data[at : at + chunk]).decode()
            await self.client.call("upload_chunk", upload=upload, offset=at, data=data)
        done = await self._call("finish_upload", f"{cid}:end", {"upload": upload})
        return f"file:{done['id']}"

    async def _call(self, name: str, cid: str, args: Mapping[str, object]) -> dict[str, JsonValue]:
        value = await self.client.call(name, cid=cid, **args)
        assert isinstance(value, dict), "all operations answer with objects"
        return value

    async def _check_woken(self, question: Question, sent: SendResult) -> None:
        """Raises `Failed` where no answer is to be expected."""
        agent = question.asked.model
        why = sent.not_woken.get(agent)
        if why is not None and why != "taken_over":
            status = 429 if why.startswith(("budget", "daily", "loop", "breaker")) else 503
            raise Failed(status, why, f"{agent} is not woken by this: {why.replace('_', ' ')}")
        if agent in sent.absent:
            known = next((each for each in await self.agents() if each.id == agent), None)
            if known is not None and known.down is not None:
                raise Failed(503, "down", f"{agent} {known.down}")
            question.state = f"{agent} is away; waiting until it is here"

    # Ending -------------------------------------------------------------------------------------

    def taken(self, question: Question) -> None:
        """Who has asked has the whole answer."""
        if question.messages:
            last = question.messages[-1]
            question.conversation.read = max(question.conversation.read, last.tseq)
            if not self._read_upto:
                self._spawn(self._mark_read())
            self._read_upto[last.thread_id] = last.tseq

    async def _mark_read(self) -> None:
        """Tell the hub, together with what is taken meanwhile: each mark is a write."""
        await asyncio.sleep(MARK_S)
        taken, self._read_upto = self._read_upto, {}
        for thread, upto in taken.items():
            with suppress(HubbubError):
                await self.client.call("mark_read", thread=thread, upto=upto)

    @asynccontextmanager
    async def waiting(self, question: Question) -> AsyncIterator[None]:
        """Within, somebody waits for the answer."""
        try:
            with question.listening():
                yield
        finally:
            await self.left(question)

    async def history(self, agent: str, user: str) -> Sequence[Message]:
        """The last messages of the conversation that `user` names, oldest first. Raises
        `OperationError` if there are none."""
        asked = InboundRequest(agent, [UserInput("a conversation")], user=user)
        question = Question(asked, Conversation(agent), "")
        await self._open(question)
        question.conversation.busy = False
        thread = question.conversation.thread_id
        page = await self.client.call("read_thread", thread=thread, limit=100)
        found = ThreadPage.model_validate(page).messages
        for message in found:
            self._conversations.take(message)
        return [message for message in found if message.sender_kind != "system"]

    async def left(self, question: Question) -> None:
        """Somebody waits for it no more: if nobody does, its turn is stopped."""
        if question.awaited or question.over.is_set() or question.message is None:
            return
        with suppress(HubbubError):
            receipt = await self._receipt(question)
            if receipt is not None and receipt.turn is not None and receipt.state != "ended":
                reason = "the connection of who asked was closed"
                await self.client.call("stop", scope="turn", target=receipt.turn, reason=reason)

    # What arrives -------------------------------------------------------------------------------

    async def _listen(self) -> None:
        try:
            async for item in self.client.events():
                await self._take(item)
        except ConnectionLost as error:
            self._lost = True
            for question in list(self._running.values()):
                question.fail(Failed.of(error))

    async def _take(self, item: Ready | Event | Signal | Disconnected) -> None:
        match item:
            case Event(seq=seq, message=message):
                self._heard(message)
                await self.heard(seq)
            case Signal(type="turn_ended", thread_id=str(thread)):
                if (question := self._running.get(thread)) is not None:
                    self._spawn(self._look(question))
            case Signal(
                type="partial", sender=agent, thread_id=str(thread), data={"text": str(text)}
            ):
                question = self._running.get(thread)
                if question is not None and question.asked.model == agent:
                    question.take_partial(text)
            case Ready():  # what was said while there was no connection is not told again
                for question in self._running.values():
                    if question.message is not None:
                        self._spawn(self._look(question, read=True))

    def _heard(self, message: Message) -> None:
        self._conversations.take(message)
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
            question.take_notice(message)
        elif _answers(question, message):
            question.take(message)
            if message.spoken_by is not None or message.cause_id == question.message.id:
                question.finish()  # it is part of no turn: nothing else is to come
            elif message.cause_id is None or not message.cause_id.startswith(
                f"{message.sender_id}-"
            ):
                self._spawn(self._look(question))  # an agent that records no turns

    async def _receipt(self, question: Question) -> Receipt | None:
        assert question.message is not None, "it was sent"
        value = await self.client.call("read_receipts", id=question.message.id)
        found = Receipts.model_validate(value).receipts
        return next((r for r in found if r.participant == question.asked.model), None)

    async def _look(self, question: Question, *, read: bool = False) -> None:
        """Whether it is over."""
        try:
            receipt = question.receipt = await self._receipt(question)
            if receipt is None or question.over.is_set():
                return
            over = receipt.state == "ended" or (
                receipt.state == "pending" and bool(question.messages)
            )
            if read or (over and not question.messages):
                await self._read(question)
            if not over:
                return
            if question.messages:
                question.finish()
            else:
                await question.silent()
        except HubbubError as error:
            question.fail(Failed.of(error))

    async def _read(self, question: Question) -> None:
        """What was said of which no event has told."""
        page = await self.client.call("read_thread", thread=question.conversation.thread_id)
        for message in ThreadPage.model_validate(page).messages:
            if _answers(question, message):
                question.take(message)


def _answers(question: Question, message: Message) -> bool:
    """Whether a message answers it."""
    asked = question.message
    return (
        asked is not None
        and message.sender_id == question.asked.model
        and message.seq > asked.seq
        and message.amends is None
        and message.type == "direct"
        and (
            message.interaction_id == asked.interaction_id
            or (
                message.thread_id == asked.thread_id
                and (message.cause_id is None or message.spoken_by is not None)
            )
        )
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def unknown_model(name: str, agents: Sequence[Participant]) -> Failed:
    """The failure for an agent that there is not."""
    known = near(name, [agent.id for agent in agents], 3)
    hint = f"; did you mean {', '.join(known)}?" if known else ""
    return Failed(404, "model_not_found", f"there is no agent {name[:64]!r}{hint}")
