"""Agents in Python: a class with a handler for each kind of message.

class Echo(Agent):
    async def on_direct(self, message: Message) -> str:
        return f"you said: {message.text}"
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from pydantic import JsonValue

from hubbub.agents.backend import AgentBackend
from hubbub.agents.inbox import Inbox
from hubbub.agents.python.link import AgentLink, current_scope
from hubbub.client import Client
from hubbub.config.agents import AgentConfig
from hubbub.errors import OperationError, UserError
from hubbub.logs import get_logger
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.memory import Recalled
from hubbub.protocol.messages import (
    DEFAULT_DEADLINE_S,
    Channel,
    Message,
    Participant,
    Quote,
    ThreadSummary,
)
from hubbub.protocol.operations import (
    Channels,
    Participants,
    SendResult,
    ThreadList,
    ThreadPage,
)

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


__all__ = ["Agent", "Handled"]

Handled: TypeAlias = JsonValue | Awaitable[JsonValue]
"""What a handler may return: the answer, or None for none."""

_NO_SETTINGS: Mapping[str, JsonValue] = MappingProxyType({})
_QUOTED = 200
"""Characters of a message that an answer quotes."""


class Agent:
    """Base class of agents written in Python.

    A handler is `async def` or, for blocking work, a plain `def`, which runs in a thread (one at a
    time). Its return value is sent as the answer, in the same thread: a text, any other JSON, or
    None for nothing. An exception ends the turn as `handler_error`; a person who waits is notified.

    Handlers run in parallel for different threads, one at a time within a thread. After a crash a
    handler runs again for the same message, and what it had sent is not sent twice.

    name      the agent's id in the network
    settings  `settings` from the YAML
    log       a logger bound to the agent
    """

    name: str = ""
    settings: Mapping[str, JsonValue] = _NO_SETTINGS
    log: FilteringBoundLogger
    _link: AgentLink | None = None

    # Handlers -----------------------------------------------------------------------------------

    def on_start(self) -> Awaitable[None] | None:
        """The agent has joined; called once per process."""
        return None

    def on_direct(self, message: Message) -> Handled:
        """A direct message."""
        return None

    def on_mention(self, message: Message) -> Handled:
        """A message in a channel, a reply thread or a broadcast that mentions this agent."""
        return None

    def on_reply(self, message: Message) -> Handled:
        """A person's message in a reply thread where this agent spoke last, without a mention.

        An agent that does not define it has it treated as a mention.
        """
        return None

    def on_broadcast(self, message: Message) -> Handled:
        """A broadcast: a person's, or an agent's that does not wake this one."""
        return None

    def on_request(self, message: Message) -> Handled:
        """A task delegated by another agent: the return value is reported as its result.

        An exception ends the request as failed. To ask back, `await self.ask(message, ...)`. For an
        agent that does not define it, tasks are treated as direct messages, and the return value of
        that handler is the result.
        """
        return None

    def on_channel_message(self, message: Message) -> Handled:
        """A channel message that neither mentions nor wakes this agent."""
        return None

    # Actions ------------------------------------------------------------------------------------

    async def send(
        self, to: str | Sequence[str], content: JsonValue, *, untrusted: bool = False
    ) -> SendResult:
        """Send a direct message to a participant or several, or into a thread by its id.

        `content` is a text or any other JSON. `untrusted`: it carries untrusted content, that is,
        content from outside the network (a website, a file), which no participant has written; an
        answer to such a message is marked automatically. Raises `OperationError` when the hub
        refuses.
        """
        target: JsonValue = to if isinstance(to, str) else list(to)
        return await self._speak(content, untrusted, to=target)

    async def post(self, channel: str, text: str, *, untrusted: bool = False) -> SendResult:
        """Post into a channel that the agent is a member of."""
        return await self._linked.speak("post_to_channel", untrusted, channel=channel, text=text)

    async def broadcast(self, text: str, *, untrusted: bool = False) -> SendResult:
        """Send a message to all participants."""
        return await self._linked.speak("broadcast_text_message", untrusted, text=text)

    async def reply(self, message: Message, text: str, *, untrusted: bool = False) -> SendResult:
        """Reply to a message, in its reply thread."""
        return await self._linked.speak("reply", untrusted, message_id=message.id, text=text)

    async def answer(
        self, message: Message, content: JsonValue, *, untrusted: bool = False
    ) -> SendResult:
        """Answer in the message's own thread.

        Quotes the message if the same turn answers several.
        """
        scope, latest = current_scope(), self._linked.latest(message)
        if scope is None or not scope.several or latest.amended == "deleted":
            return await self._speak(content, untrusted, to=message.thread_id)
        quote = Quote(message_id=message.id, text=latest.text[:_QUOTED]).model_dump()
        return await self._speak(content, untrusted, to=message.thread_id, quote=quote)

    async def ask(
        self,
        to: str | Message,
        content: JsonValue,
        timeout: float = 30.0,  # noqa: ASYNC109 - the common case needs no second block
    ) -> Message:
        """Send a direct message to one participant and wait for the answer.

        With a message of `on_request` in place of a name, the participant that delegated the task
        is asked, and the request says so. The answer is not passed to `on_direct`. Raises
        TimeoutError after `timeout` seconds, and `OperationError` when the hub refuses:
        `wait_cycle` if the other one is already waiting for an answer of this agent, directly or
        through others.
        """
        if isinstance(to, str):
            operation, arguments = _content_arguments(content)
            return await self._linked.ask(to, timeout, operation, to=to, **arguments)
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        question: dict[str, JsonValue] = {"request": to.task or to.id, "status": "question"}
        return await self._linked.ask(to.sender_id, timeout, "report", **question, text=text)

    async def delegate(self, to: str, task: str, *, deadline_s: float = DEFAULT_DEADLINE_S) -> str:
        """Delegate work to another agent, and wait for the result that it reports.

        Neither result nor failure is passed to `on_direct`. Raises `RequestFailed` when the agent
        reports failure, is stopped, ends without a report, or `deadline_s` seconds have passed; and
        `OperationError` when the hub refuses.
        """
        return await self._linked.delegate(to, task, deadline_s)

    async def report(
        self, request: Message | str, text: str, *, failed: bool = False, untrusted: bool = False
    ) -> SendResult:
        """Report the result of a task to the one who delegated it; a task has one report.

        `request` is the message that asked, or its id. Raises `OperationError` when it has ended.
        """
        id = request if isinstance(request, str) else request.id
        status = "failed" if failed else "result"
        return await self._linked.speak("report", untrusted, request=id, status=status, text=text)

    async def call(self, operation: str, /, **args: JsonValue) -> JsonValue:
        """Call any operation of the hub or of one of its mods by its name, such as `create_task`.

        Returns the result as JSON, without empty fields. A write is made once, even if the handler
        runs again after a crash. Raises `OperationError` when the hub refuses, and for an unknown
        operation.
        """
        return await self._linked.call(operation, **args)

    async def participants(self) -> tuple[Participant, ...]:
        """Everybody in the network, with kind, presence and card."""
        answer = await self._linked.read("list_participants")
        return Participants.model_validate(answer).participants

    async def channels(self) -> tuple[Channel, ...]:
        """All channels, with their members as far as the agent may see them."""
        return Channels.model_validate(await self._linked.read("list_channels")).channels

    async def threads(self, limit: int = 50) -> tuple[ThreadSummary, ...]:
        """The agent's threads with their last messages, most recently active first."""
        answer = await self._linked.read("list_threads", limit=limit)
        return ThreadList.model_validate(answer).threads

    async def read_thread(
        self, thread: str, *, before: int | None = None, limit: int = 20
    ) -> tuple[Message, ...]:
        """The last messages of a thread (`direct_ann`, `channel_desk`, ...), oldest first.

        `before` is a position in the thread (`tseq`): only messages before it.
        """
        page = await self._linked.read("read_thread", thread=thread, before=before, limit=limit)
        return ThreadPage.model_validate(page).messages

    async def remember(self, key: str, value: JsonValue) -> None:
        """Store a value (a text or other JSON, 16 KiB at most) beyond the life of this process.

        Raises `OperationError` for an invalid key, and when there are 256 other keys.
        """
        await self._linked.write("remember", key=key, value=value)

    async def recall(self, key: str, default: JsonValue = None) -> JsonValue:
        """The value stored under a key, or `default`. Raises `OperationError`."""
        try:
            answer = await self._linked.read("recall", key=key)
        except OperationError as exc:
            if exc.code != ErrorCode.UNKNOWN_KEY:
                raise
            return default
        return Recalled.model_validate(answer).value

    async def recall_keys(self) -> tuple[str, ...]:
        """The keys of all stored values, in order."""
        recalled = Recalled.model_validate(await self._linked.read("recall"))
        return tuple(entry.key for entry in recalled.entries)

    async def forget(self, key: str) -> None:
        """Delete the value stored under a key, if there is one."""
        try:
            await self._linked.write("forget", key=key)
        except OperationError as exc:
            if exc.code != ErrorCode.UNKNOWN_KEY:
                raise

    # Runtime ------------------------------------------------------------------------------------

    def _join(self, link: AgentLink, settings: Mapping[str, JsonValue]) -> None:
        """Called by the runtime before `on_start`. Raises `UserError` if it runs already: what it
        does in one network would be done in the other."""
        if self._link is not None:
            raise UserError(
                f"{link.me}: the same object already runs in a network; pass its class, or make an "
                "object for each network"
            )
        self.name, self.settings, self._link = link.me, settings, link
        self.log = get_logger("hubbub.agent").bind(agent=link.me)

    def _leave(self) -> None:
        """Called by the runtime at the end."""
        self._link = None

    def _backend(self, client: Client, inbox: Inbox, config: AgentConfig) -> AgentBackend | None:
        """A backend that replaces the handlers; None: the handlers take the turns."""
        return None

    @property
    def _linked(self) -> AgentLink:
        if self._link is None:
            raise RuntimeError("the agent has not joined a network; begin in on_start")
        return self._link

    async def _speak(self, content: JsonValue, untrusted: bool, **where: JsonValue) -> SendResult:
        operation, arguments = _content_arguments(content)
        return await self._linked.speak(operation, untrusted, **where, **arguments)


def _content_arguments(content: JsonValue) -> tuple[str, dict[str, JsonValue]]:
    """The operation that sends `content`, a text or other JSON, and its arguments."""
    if isinstance(content, str):
        return "send_text_message", {"text": content}
    return "send_message", {"content": content}
