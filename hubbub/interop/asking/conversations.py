"""Finds the thread that a request continues. Pure.

A request contains a whole conversation. It continues the thread whose messages match the end of
that conversation, and only the last group is new. Without a match, a new thread is opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from hubbub.interop.asking.request import AgentAnswer, InboundRequest, UserInput
from hubbub.protocol import thread_ids
from hubbub.protocol.external_tools import ExternalResult, call_in
from hubbub.protocol.messages import Message, ThreadSummary

__all__ = ["Conversation", "Conversations", "answer_of", "content_of", "input_of", "text_of"]

MAX_CONVERSATIONS = 1000
"""Conversations cached per participant."""
MAX_GROUPS = 40
"""Groups compared per conversation: the latest ones."""

Key = tuple[str, ...]

_KEY, _FILES = "idempotency_key", "files"
"""Fields of a question's content, to recognise the question: its key, and digests of its files."""


class Conversation:
    """A thread with an agent, as groups that can be compared with a request's."""

    def __init__(self, agent: str, thread_id: str = "", read: int = 0):
        self.agent, self.thread_id, self.read = agent, thread_id, read
        self.is_busy = False
        """Whether a question is waiting for its answer."""
        self.begin()

    def begin(self) -> None:
        """Forget the messages."""
        self.keys: list[Key] = []
        self.before, self.quoted = 0, ""
        """Earlier groups that are quoted in the first message, and their digest."""
        self.is_loaded = True
        """Whether `keys` has all groups, or as many as are compared."""
        self.is_complete = True
        """Whether `keys` goes back to the first message."""
        self.question: Message | None = None
        """The asker's last message."""
        self.answers: list[Message] = []
        """The agent's messages since then."""
        self.tseq = 0
        """The position of the last message."""

    @property
    def anchor(self) -> str:
        """The message (m42) whose reply thread it is."""
        return "m" + self.thread_id.rpartition(".t")[2]

    def add(self, message: Message) -> None:
        """Add a message of the thread."""
        if message.tseq <= self.tseq:
            return
        self.tseq = message.tseq
        if message.sender_id == self.agent:
            self.answers.append(message)
            answer = answer_of(self.answers).key
            if self.keys and self.keys[-1][0] == "agent":
                self.keys[-1] = answer
            else:
                self.keys.append(answer)
        elif message.sender_kind == "human":
            self.question, self.answers = message, []
            if (quoted := _quoted(message)) is not None:
                self.before, self.quoted = quoted
            key = input_of(message).key
            if self.keys[-1:] != [key]:  # else it is sent again, as there was no answer
                self.keys.append(key)
        if len(self.keys) > MAX_GROUPS:
            self.keys, self.is_complete = self.keys[-MAX_GROUPS:], False

    def matches(self, groups: Sequence[UserInput | AgentAnswer]) -> bool:
        """Whether the groups are this conversation."""
        if not self.keys or len(self.keys) + self.before > len(groups):
            return False
        earlier, latest = groups[: -len(self.keys)], groups[-len(self.keys) :]
        if self.is_complete and len(earlier) != self.before:
            return False
        if self.is_complete and self.quoted and self.quoted != _digest(earlier):
            return False
        return self.keys == [group.key for group in latest]

    @property
    def is_unread(self) -> bool:
        """Whether the answer to the last question is missing or was not delivered."""
        return not self.answers or self.read < self.answers[-1].tseq

    def is_repeated_by(self, request: InboundRequest, idempotency_key: str) -> bool:
        """Whether the request is this conversation up to its last question, and that again."""
        groups = [*request.groups, *([answer_of(self.answers)] if self.answers else [])]
        return self.can_repeat(idempotency_key) and self.matches(groups)

    def can_repeat(self, idempotency_key: str) -> bool:
        """Whether a question equal to the last one, with this key or without any, is the same
        question rather than a new one."""
        if not idempotency_key:
            return self.is_unread
        content = self.question.content if self.question is not None else None
        return isinstance(content, dict) and content.get(_KEY) == idempotency_key


class Conversations:
    """The conversations of one participant with agents."""

    def __init__(self, me: str):
        self._me = me
        self._by_thread: dict[str, Conversation] = {}
        self._by_question: dict[tuple[str, Key], dict[str, Conversation]] = {}

    def load(self, threads: Iterable[ThreadSummary]) -> None:
        """Add the threads of a new connection."""
        for thread in sorted(threads, key=lambda thread: thread.last_seq):
            if thread.id in self._by_thread or self._agent_of(thread.id) is None:
                continue
            for message in thread.messages:
                self.add(message)
            if (conversation := self._by_thread.get(thread.id)) is not None:
                conversation.read = thread.read
                is_complete = bool(thread.messages) and thread.messages[0].tseq == 1
                conversation.is_complete = conversation.is_loaded = is_complete

    def reload(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Replace the messages of a conversation with these, its latest."""
        conversation.is_loaded = True
        if not messages or messages[-1].tseq < conversation.tseq:
            return  # a newer one arrived meanwhile
        self._remove_from_index(conversation)
        conversation.begin()
        for message in messages:
            self.add(message)
        conversation.is_complete = messages[0].tseq == 1

    def get_or_create(self, agent: str, thread_id: str) -> Conversation:
        conversation = self._by_thread.pop(thread_id, None) or Conversation(agent, thread_id)
        self._by_thread[thread_id] = conversation
        while len(self._by_thread) > MAX_CONVERSATIONS:
            self._remove_from_index(self._by_thread.pop(next(iter(self._by_thread))))
        return conversation

    def add(self, message: Message) -> None:
        """Add a message to its conversation, if it belongs to one."""
        agent = self._agent_of(message.thread_id)
        if agent is None or message.amends is not None or message.sender_kind == "system":
            return
        conversation = self.get_or_create(agent, message.thread_id)
        self._remove_from_index(conversation)
        conversation.add(message)
        if (key := _index_key(conversation)) is not None:
            self._by_question.setdefault(key, {})[conversation.thread_id] = conversation

    def find(self, request: InboundRequest, idempotency_key: str = "") -> Conversation | None:
        """The conversation whose last question the request repeats, or which it continues."""
        *earlier, new = request.groups
        for conversation in self._with_question(request.model, new):
            if conversation.is_repeated_by(request, idempotency_key):
                return conversation
        if len(earlier) < 2:
            return None
        for conversation in self._with_question(request.model, earlier[-2]):
            if conversation.matches(earlier):
                return conversation
        return None

    def _with_question(self, agent: str, group: UserInput | AgentAnswer) -> Sequence[Conversation]:
        candidates = self._by_question.get((agent, group.key), {})
        return [conversation for conversation in candidates.values() if not conversation.is_busy]

    def _remove_from_index(self, conversation: Conversation) -> None:
        if (key := _index_key(conversation)) is not None:
            same = self._by_question.get(key, {})
            same.pop(conversation.thread_id, None)
            if not same:
                self._by_question.pop(key, None)

    def _agent_of(self, thread_id: str) -> str | None:
        """The agent of the conversation in this thread; None for any other thread."""
        members = thread_ids.members_of(thread_id)
        if len(members) != 2 or thread_ids.depth(thread_id) != 1:
            return None
        return next((member for member in members if member != self._me), None)


def _index_key(conversation: Conversation) -> tuple[str, Key] | None:
    question = next((key for key in reversed(conversation.keys) if key[0] == "asker"), None)
    return None if question is None else (conversation.agent, question)


def answer_of(messages: Sequence[Message]) -> AgentAnswer:
    """The answer that an agent's messages form together."""
    calls = [call.id for message in messages if (call := call_in(message)) is not None]
    texts = [message.text.strip() for message in messages if call_in(message) is None]
    return AgentAnswer("\n\n".join(texts), tuple(calls))


def content_of(request: InboundRequest, before: int, idempotency_key: str = "") -> JsonValue:
    """The content of the message for the new input; None if it is only text. `before` is the
    number of earlier groups quoted in it."""
    new = request.new
    content: dict[str, JsonValue] = {}
    if new.results:
        content["external_results"] = [r.model_dump(mode="json") for r in new.results]
    if request.tools:
        content["external_tools"] = [tool.model_dump(mode="json") for tool in request.tools]
    if new.files:
        content[_FILES] = [file.digest for file in new.files]
    if before:
        content |= {"before": before, "quoted": _digest(request.groups[-before - 1 : -1])}
    if idempotency_key:
        content[_KEY] = idempotency_key
    if content or new.instructions or not new.text:
        return {"text": new.text, **content}
    return None


def text_of(request: InboundRequest, before: int) -> str:
    """The text of the message for the new input."""
    new, parts = request.new, list[str]()
    if before:
        earlier = "\n\n".join(_line(group) for group in request.groups[-before - 1 : -1])
        parts.append(f"Earlier in this conversation, elsewhere:\n\n{earlier}")
    if new.instructions:
        parts.append(f"Instructions for this conversation:\n\n{new.instructions}")
    for result in new.results:
        parts.append(f"Result of the call {result.id}:\n\n{result.output}")
    if new.text:
        parts.append(new.text)
    elif new.files:
        parts.append(", ".join(file.name for file in new.files))
    return "\n\n".join(parts)


def _line(group: UserInput | AgentAnswer) -> str:
    if isinstance(group, UserInput):
        results = (f"result: {result.output}" for result in group.results)
        return "\n".join(filter(None, (f"asker: {group.text}" if group.text else "", *results)))
    return f"you: {group.text or '(called tools)'}"


def input_of(message: Message) -> UserInput:
    """The input in a message of the asker."""
    content = message.content
    if not isinstance(content, dict):
        return UserInput(message.text.strip())
    text, results = content.get("text"), content.get("external_results")
    ids = [r["id"] for r in results if isinstance(r, dict)] if isinstance(results, list) else []
    empty = tuple(ExternalResult(id=id, output="") for id in ids if isinstance(id, str))
    files = content.get(_FILES)
    digests = tuple(map(str, files)) if isinstance(files, list) else ()
    text = text if isinstance(text, str) else message.text.strip()
    return UserInput(text, results=empty, digests=digests)


def _quoted(message: Message) -> tuple[int, str] | None:
    """The number and the digest of the groups that are quoted in a message."""
    content = message.content
    before = content.get("before") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(before, int):
        return None
    return before, str(content.get("quoted", ""))


def _digest(groups: Sequence[UserInput | AgentAnswer]) -> str:
    return hashlib.sha256(repr([group.key for group in groups]).encode()).hexdigest()[:40]
