"""A Python agent's connection to the network: sending, asking, delegating, reading."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from pydantic import JsonValue

from hubbub.agents.inbox import Inbox
from hubbub.agents.tools.hub import sends_message, takes_untrusted_mark
from hubbub.agents.turn.activity import TurnActivity
from hubbub.agents.turn.outbox import Outbox
from hubbub.agents.turn.steps import TurnClock
from hubbub.errors import OperationError, RequestFailed
from hubbub.ids import message_id, turn_id, write_id
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Message, OperationInfo
from hubbub.protocol.operations import SendResult
from hubbub.protocol.turns import ToolCallRecord

__all__ = [
    "AgentLink",
    "Delegations",
    "PendingQuestions",
    "Scope",
    "current_scope",
    "ends_request",
    "entered",
    "is_answer",
]


# The scope of a handler: the cause and the idempotency keys of what it sends.


@dataclass(slots=True)
class Scope:
    """One run of a handler for one message.

    `cause` is the turn, or the message that an observer received. Writes are numbered, so that the
    nth write has the same `cid` when the handler runs again for the same message.
    """

    cause: str
    step: int = 1
    several: bool = False
    """Whether the same turn also answers other messages."""
    clock: TurnClock = field(default_factory=TurnClock)
    """The turn's."""
    activity: TurnActivity | None = None
    """The turn's activity signals; None for an observer."""
    untrusted: bool = False
    """Whether its messages carry untrusted content."""
    calls: list[ToolCallRecord] = field(default_factory=list)
    has_sent: bool = False
    """Whether it sent a message."""
    _writes: int = 0

    def next_cid(self) -> str:
        cid = write_id(self.cause, self.step, self._writes)
        self._writes += 1
        return cid


_current: ContextVar[Scope | None] = ContextVar("hubbub_scope", default=None)


def current_scope() -> Scope | None:
    """The scope that the running task was started in; None outside handlers."""
    return _current.get()


@contextlib.contextmanager
def entered(scope: Scope) -> Iterator[Scope]:
    """Run a block and the tasks that it starts within `scope`."""
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)


# Questions of handlers, and matching answers to them.


def is_answer(message: Message, seq: int, thread_id: str, request: str = "") -> bool:
    """Whether `message` answers the one at `seq` in that thread, a question about `request` if that
    is given.

    An answer quotes the question, replies to it, or is caused by it. An agent that answers several
    messages in one turn quotes the right one. People's messages have no cause: their next message
    in the thread is the answer, or about a request the one that the hub marks as the reply.
    """
    question = message_id(seq)
    if message.quote is not None:
        return message.quote.message_id == question
    if message.by_person and message.cause_id is None and message.reply_to is None:
        mark = message.request
        is_reply = mark is not None and (mark.kind, mark.id) == ("reply", request)
        return is_reply if request else message.thread_id == thread_id
    turn = turn_id(message.sender_id, seq)
    return message.reply_to == question or message.cause_id in (question, turn)


def _request_of(question: Message) -> str:
    return question.request.id if question.request is not None else ""


@dataclass(eq=False)
class PendingQuestion:
    """A question to `to`, at position `seq`; None until the hub assigns it."""

    to: str
    answer: asyncio.Future[Message]
    seq: int | None = None
    thread_id: str = ""
    request: str = ""
    """The request that it is about; empty for other questions."""
    early: list[tuple[Message, asyncio.Future[bool]]] = field(default_factory=list)
    """Messages from `to` that arrived before `seq` was assigned."""

    def set_position(self, seq: int, thread_id: str, request: str = "") -> None:
        """Set the question's position, and check the messages that arrived before."""
        self.seq, self.thread_id, self.request = seq, thread_id, request
        for message, verdict in self.early:
            verdict.set_result(self.take(message))

    def take(self, message: Message) -> bool:
        """Resolve the question if the message is its answer. Returns whether it is."""
        assert self.seq is not None, "only after set_position()"
        where = self.seq, self.thread_id, self.request
        if self.answer.done() or not is_answer(message, *where):
            return False
        self.answer.set_result(message)
        return True

    def close(self) -> None:
        """Stop waiting."""
        self.answer.cancel()
        for _, verdict in self.early:
            if not verdict.done():
                verdict.set_result(False)


class PendingQuestions:
    """The open questions.

    There is at most one to each participant at a time, so that answers cannot be confused, even if
    one message answers two questions.
    """

    def __init__(self) -> None:
        self._open: dict[str, PendingQuestion] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def lock(self, to: str) -> asyncio.Lock:
        """The lock to hold during a question to `to`."""
        return self._locks.setdefault(to, asyncio.Lock())

    def begin(self, to: str) -> PendingQuestion:
        """Add a question, before it is sent."""
        ask = self._open[to] = PendingQuestion(to, asyncio.get_running_loop().create_future())
        return ask

    def end(self, ask: PendingQuestion) -> None:
        del self._open[ask.to]
        ask.close()

    def claim(self, message: Message) -> asyncio.Future[bool] | None:
        """Whether the message answers a question; the verdict can follow later. None: no."""
        ask = self._open.get(message.sender_id)
        if ask is None:
            return None
        verdict: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if ask.seq is None:
            ask.early.append((message, verdict))
            return verdict
        if not ask.take(message):
            return None
        verdict.set_result(True)
        return verdict


# Delegated work of handlers, and matching results to it.


def ends_request(message: Message, request: str) -> bool:
    """Whether the message ends that request."""
    mark = message.request
    return mark is not None and mark.ends and mark.id == request


@dataclass(eq=False)
class Delegation:
    """One request; `id` is empty until the hub assigns it."""

    end: asyncio.Future[Message]
    id: str = ""
    early: list[tuple[Message, asyncio.Future[bool]]] = field(default_factory=list)
    """Ends of requests that arrived before the id was assigned."""

    def take(self, message: Message) -> bool:
        """Resolve the request if the message ends it. Returns whether it does."""
        if self.end.done() or not ends_request(message, self.id):
            return False
        self.end.set_result(message)
        return True


class Delegations:
    """The open requests of handlers."""

    def __init__(self) -> None:
        self._open: list[Delegation] = []

    @contextlib.contextmanager
    def begin(self) -> Iterator[Delegation]:
        """A context in which a handler waits. At its end, unmatched early messages are released."""
        delegation = Delegation(asyncio.get_running_loop().create_future())
        self._open.append(delegation)
        try:
            yield delegation
        finally:
            self._open.remove(delegation)
            delegation.end.cancel()
            self._assign_early(delegation)

    def set_id(self, delegation: Delegation, id: str) -> None:
        """Set the request's id, and check the messages that arrived before."""
        delegation.id = id
        self._assign_early(delegation)

    def claim(self, message: Message) -> asyncio.Future[bool] | None:
        """Whether a handler waits for the message; the verdict can follow later. None: no."""
        if message.request is None or not message.request.ends:
            return None
        verdict: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if any(delegation.take(message) for delegation in self._open):
            verdict.set_result(True)
            return verdict
        unassigned = [delegation for delegation in self._open if not delegation.id]
        for delegation in unassigned:
            delegation.early.append((message, verdict))
        return verdict if unassigned else None

    def _assign_early(self, delegation: Delegation) -> None:
        """Assign the early messages to this request, leave them to another one without an id, or
        release them.
        """
        early, delegation.early = delegation.early, []
        held = [verdict for other in self._open for _, verdict in other.early]
        for message, verdict in early:
            if delegation.take(message):
                verdict.set_result(True)
            elif not verdict.done() and not any(verdict is other for other in held):
                verdict.set_result(False)


class AgentLink:
    """One agent's connection for its handlers."""

    def __init__(self, outbox: Outbox, inbox: Inbox):
        self._outbox, self._inbox = outbox, inbox
        self._asks = PendingQuestions()
        self._delegations = Delegations()
        self._is_first_connection = True
        self._held: dict[str, dict[int, asyncio.Future[bool]]] = {}
        self._operations: Mapping[str, OperationInfo] = {}

    @property
    def me(self) -> str:
        return self._inbox.me

    def connected(self, ready: Ready) -> None:
        """Note the operations of the hub and its mods, and the turns that an earlier process
        started: answers to their messages are held until they ask again or end.
        """
        self._operations = {operation.name: operation for operation in ready.operations}
        # On later connections, the started turns are this process's own.
        if self._is_first_connection or not ready.resumed:
            self._is_first_connection = False
            self._held = {p.started: {} for p in ready.pending if p.started is not None}

    async def call(self, operation: str, /, **args: JsonValue) -> JsonValue:
        """Call any operation, a write at most once. Raises `OperationError`."""
        scope, info = current_scope(), self._operations.get(operation)
        if scope is None or info is None or info.permission == "read":
            return await self._outbox.call(operation, cid=None, cause=None, **args)
        if scope.untrusted and takes_untrusted_mark(info):
            args["untrusted"] = True
        cid, at = scope.next_cid(), scope.clock.ms
        cause = scope.cause if sends_message(info) else None
        value = await self._outbox.call(operation, cid=cid, cause=cause, **args)
        scope.calls.append(_record(scope, cid, operation, args, value, at))
        return value

    async def read(self, operation: str, /, **args: JsonValue) -> JsonValue:
        """Call an operation that changes nothing. Raises `OperationError`."""
        return await self._outbox.call(operation, cid=None, cause=None, **args)

    async def speak(
        self, operation: str, untrusted: bool = False, /, **args: JsonValue
    ) -> SendResult:
        """Send a message from the running handler. Raises `OperationError`."""
        scope = current_scope()
        if untrusted or (scope is not None and scope.untrusted):
            args["untrusted"] = True
        if scope is None:  # not in a handler: no cause, and never repeated
            value = await self._outbox.call(operation, cid=None, cause=None, **args)
            return SendResult.model_validate(value)
        cid, at = scope.next_cid(), scope.clock.ms
        value = await self._outbox.call(operation, cid=cid, cause=scope.cause, **args)
        sent = SendResult.model_validate(value)
        scope.calls.append(_record(scope, cid, operation, args, sent.id, at))
        scope.has_sent = True
        return sent

    async def write(self, operation: str, /, **args: JsonValue) -> None:
        """Call a write operation that sends no message, at most once even if the handler runs
        again. Raises `OperationError`.
        """
        scope = current_scope()
        cid = None if scope is None else scope.next_cid()
        await self._outbox.call(operation, cid=cid, cause=None, **args)

    async def activity(self, thread_id: str, data: JsonValue) -> None:
        """Show the agent's activity to the other participants of the thread."""
        await self._outbox.activity(thread_id, data)

    async def ask(self, to: str, within: float, operation: str, /, **args: JsonValue) -> Message:
        """Send a direct message by this operation, and wait for the answer.

        Raises TimeoutError after `within` seconds, and `OperationError`, for example if waiting
        would close a cycle of waiting agents.
        """
        try:
            async with _show_waiting(to), asyncio.timeout(within) as limit, self._asks.lock(to):
                ask = self._asks.begin(to)
                try:
                    sent = await self._send_question(limit, operation, args)
                    return await self._answer(ask, sent)
                finally:
                    self._asks.end(ask)
        except TimeoutError as exc:
            raise TimeoutError(f"{to} has not answered within {within:g} s") from exc

    async def _send_question(
        self, limit: asyncio.Timeout, operation: str, args: Mapping[str, JsonValue]
    ) -> SendResult:
        sending = asyncio.create_task(self.speak(operation, awaits=True, **args))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            if limit.expired():  # the message may still be stored, and then the hub tracks a wait
                sending.add_done_callback(self._stop_waiting)
            else:
                sending.cancel()
            raise

    def _stop_waiting(self, sending: asyncio.Task[SendResult]) -> None:
        if not sending.cancelled() and sending.exception() is None:
            self._outbox.post("stop_waiting", message=sending.result().id)

    async def _answer(self, ask: PendingQuestion, sent: SendResult) -> Message:
        """Wait for the answer to a sent question; the hub tracks waiting agents."""
        try:
            _check_woken(ask.to, sent)
            ask.set_position(sent.seq, sent.thread_id, _request_of(sent.message))
            self._find_earlier_answer(ask, sent)
            return await ask.answer
        except (asyncio.CancelledError, OperationError):  # no answer, or a timeout
            self._outbox.post("stop_waiting", message=sent.id)
            raise

    async def delegate(self, to: str, task: str, deadline_s: float) -> str:
        """Delegate work and wait for the result. Raises `RequestFailed` if the request ends without
        one, and `OperationError` if the hub refuses.
        """
        async with _show_waiting(to):
            with self._delegations.begin() as delegation:
                sent = await self.speak("delegate", to=to, task=task, deadline_s=deadline_s)
                self._delegations.set_id(delegation, sent.id)
                for message in self._inbox.messages(sent.thread_id):
                    if delegation.take(message):  # it arrived before this process
                        self._release(message)
                ended = await delegation.end
        assert ended.request is not None, "it matched the request"
        if ended.request.kind == "failed":
            raise RequestFailed(sent.id, ended.request.outcome, ended.text)
        return ended.text

    # Awaited answers, which must start no turn ----------------------------------------------------

    def claim(self, message: Message) -> asyncio.Future[bool] | None:
        """Whether a handler waits for this message; the verdict can follow later. None: no."""
        verdict = self._delegations.claim(message) or self._asks.claim(message)
        turn = None if verdict is not None else self._asked_in_old_turn(message)
        if turn is not None:
            verdict = asyncio.get_running_loop().create_future()
            self._held[turn][message.seq] = verdict
        return verdict

    def release_answers_for(self, turn: str) -> None:
        """Release the held answers of a turn that has ended without asking again."""
        for verdict in self._held.pop(turn, {}).values():
            if not verdict.done():
                verdict.set_result(False)

    def _asked_in_old_turn(self, message: Message) -> str | None:
        if not self._held:
            return None
        for own in self._inbox.messages(message.thread_id):
            asked = own.sender_id == self.me and own.cause_id in self._held
            where = own.seq, own.thread_id, _request_of(own)
            if asked and (ends_request(message, own.id) or is_answer(message, *where)):
                return own.cause_id
        return None

    def _find_earlier_answer(self, ask: PendingQuestion, sent: SendResult) -> None:
        """Check for an answer from before a crash."""
        for message in self._inbox.messages(sent.thread_id):
            if message.sender_id == ask.to and message.seq > sent.seq and ask.take(message):
                self._release(message)

    def _release(self, message: Message) -> None:
        """Resolve the verdict of a held message that is the awaited answer."""
        for verdicts in self._held.values():
            if message.seq in verdicts and not verdicts[message.seq].done():
                verdicts[message.seq].set_result(True)

    def latest(self, message: Message) -> Message:
        """The message with all later edits."""
        thread = self._inbox.thread(message.thread_id)
        return message if thread is None else thread.latest(message)


def _record(
    scope: Scope, cid: str, name: str, args: Mapping[str, JsonValue], result: JsonValue, at: float
) -> ToolCallRecord:
    """The turn's record of a call that started at `at` ms."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return ToolCallRecord(
        id=cid,
        name=name,
        arguments=dict(args),
        result=text,
        at_ms=at,
        duration_ms=scope.clock.since(at),
    )


def _check_woken(to: str, sent: SendResult) -> None:
    """Raises `OperationError` if the recipient was not woken and so will not answer."""
    code = sent.not_woken.get(to)
    if code is not None:
        message = f"{to} received the question but cannot answer it ({code}); do without"
        raise OperationError(code, message, details={"message": sent.id})


def _show_waiting(participant: str) -> contextlib.AbstractAsyncContextManager[None]:
    """A context in which the activity of the running handler's turn is `waiting`."""
    scope = current_scope()
    if scope is None or scope.activity is None:
        return contextlib.nullcontext()
    return scope.activity.waiting(participant)
