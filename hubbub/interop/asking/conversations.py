"""Which thread a request goes on with. Pure.

A request tells a whole conversation. It is that of a thread whose words it ends with; only what
comes after them is new. A conversation that no thread has is begun in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from hubbub.interop.asking.request import Answered, InboundRequest, UserInput
from hubbub.protocol import thread_ids
from hubbub.protocol.external_tools import ExternalResult, call_in
from hubbub.protocol.messages import Message, ThreadSummary

__all__ = ["Conversation", "Conversations", "answered", "content_of", "said", "text_of"]

MOST = 1000
"""Conversations of a participant that are known at a time."""
MOST_GROUPS = 40
"""Of a conversation: those before are not compared."""

Key = tuple[str, ...]


class Conversation:
    """A thread with an agent, as a request would tell it."""

    def __init__(self, agent: str, thread_id: str = "", read: int = 0):
        self.agent, self.thread_id, self.read = agent, thread_id, read
        self.keys: list[Key] = []
        self.before = 0
        """Groups that were told when it began, and stand in no message of their own."""
        self.whole = True
        """Whether its beginning is known."""
        self.question: Message | None = None
        """The last that the asker has said."""
        self.answers: list[Message] = []
        """What the agent has said since."""
        self.busy = False
        """Whether a question waits for its answer here."""
        self._tseq = 0

    @property
    def anchor(self) -> str:
        """The message (m42) that it hangs under."""
        return "m" + self.thread_id.rpartition(".t")[2]

    def take(self, message: Message) -> None:
        """Somebody has said something in it."""
        if message.tseq <= self._tseq:
            return
        self._tseq = message.tseq
        if message.sender_id == self.agent:
            self.answers.append(message)
            answer = answered(self.answers).key
            if self.keys and self.keys[-1][0] == "agent":
                self.keys[-1] = answer
            else:
                self.keys.append(answer)
        elif message.sender_kind == "human":
            self.question, self.answers = message, []
            self.before = _before(message) or self.before
            self.keys.append(said(message).key)
        if len(self.keys) > MOST_GROUPS:
            self.keys, self.whole = self.keys[-MOST_GROUPS:], False

    def is_told_by(self, groups: Sequence[UserInput | Answered]) -> bool:
        """Whether these are its words."""
        if not self.keys or len(self.keys) + self.before > len(groups):
            return False
        if self.whole and len(self.keys) + self.before != len(groups):
            return False
        return self.keys == [group.key for group in groups[-len(self.keys) :]]

    @property
    def unread(self) -> bool:
        """Whether the answer to its last question has not come, or was not taken."""
        return not self.answers or self.read < self.answers[-1].tseq


class Conversations:
    """Those of one participant, with agents."""

    def __init__(self, me: str):
        self._me = me
        self._by_thread: dict[str, Conversation] = {}
        self._by_question: dict[tuple[str, Key], dict[str, Conversation]] = {}

    def begin(self, threads: Iterable[ThreadSummary]) -> None:
        """Take in what a connection begins with."""
        for thread in sorted(threads, key=lambda thread: thread.last_seq):
            if thread.id in self._by_thread or self._agent(thread.id) is None:
                continue
            for message in thread.messages:
                self.take(message)
            if (found := self._by_thread.get(thread.id)) is not None:
                found.read = thread.read
                found.whole = bool(thread.messages) and thread.messages[0].tseq == 1

    def get(self, thread_id: str) -> Conversation | None:
        return self._by_thread.get(thread_id)

    def of(self, agent: str, thread_id: str) -> Conversation:
        """The conversation in this thread."""
        found = self._by_thread.pop(thread_id, None) or Conversation(agent, thread_id)
        self._by_thread[thread_id] = found
        while len(self._by_thread) > MOST:
            self._index(self._by_thread.pop(next(iter(self._by_thread))), out=True)
        return found

    def take(self, message: Message) -> None:
        """Somebody has said something."""
        agent = self._agent(message.thread_id)
        if agent is None or message.amends is not None or message.sender_kind == "system":
            return
        conversation = self.of(agent, message.thread_id)
        self._index(conversation, out=True)
        conversation.take(message)
        self._index(conversation)

    def find(self, asked: InboundRequest, *, again: bool = False) -> Conversation | None:
        """The conversation that a request goes on with, or repeats the last question of; with
        `again` also where the answer was taken."""
        *earlier, new = asked.groups
        for conversation in self._with_question(asked.model, new):
            told = [*asked.groups, *([answered(a)] if (a := conversation.answers) else [])]
            if (conversation.unread or again) and conversation.is_told_by(told):
                return conversation
        if len(earlier) < 2:
            return None
        for conversation in self._with_question(asked.model, earlier[-2]):
            if conversation.is_told_by(earlier):
                return conversation
        return None

    def _with_question(self, agent: str, group: UserInput | Answered) -> Sequence[Conversation]:
        found = self._by_question.get((agent, group.key), {})
        return [conversation for conversation in found.values() if not conversation.busy]

    def _index(self, conversation: Conversation, *, out: bool = False) -> None:
        question = next((key for key in reversed(conversation.keys) if key[0] == "asker"), None)
        if question is None:
            return
        place = conversation.agent, question
        if not out:
            self._by_question.setdefault(place, {})[conversation.thread_id] = conversation
            return
        several = self._by_question.get(place, {})
        several.pop(conversation.thread_id, None)
        if not several:
            self._by_question.pop(place, None)

    def _agent(self, thread_id: str) -> str | None:
        """With whom a conversation is held in this thread; None: it is no such thread."""
        members = thread_ids.members_of(thread_id)
        if len(members) != 2 or thread_ids.depth(thread_id) != 1:
            return None
        return next((member for member in members if member != self._me), None)


def answered(messages: Sequence[Message]) -> Answered:
    """What an agent has said in several messages."""
    calls = [call.id for message in messages if (call := call_in(message)) is not None]
    texts = [message.text.strip() for message in messages if call_in(message) is None]
    return Answered("\n\n".join(texts), tuple(calls))


def content_of(asked: InboundRequest, before: int) -> JsonValue:
    """The content of the message that says what is new; None: its text alone. `before`: how many of
    the groups before it are told along with it."""
    new = asked.new
    content: dict[str, JsonValue] = {}
    if new.results:
        content["external_results"] = [r.model_dump(mode="json") for r in new.results]
    if asked.tools:
        content["external_tools"] = [tool.model_dump(mode="json") for tool in asked.tools]
    if before:
        content["before"] = before
    if content or new.instructions or not new.text:
        return {"text": new.text, **content}
    return None


def text_of(asked: InboundRequest, before: int) -> str:
    """How that message reads."""
    new, parts = asked.new, list[str]()
    if before:
        told = "\n\n".join(_line(group) for group in asked.groups[-before - 1 : -1])
        parts.append(f"What was said before, elsewhere:\n\n{told}")
    if new.instructions:
        parts.append(f"Instructions for this conversation:\n\n{new.instructions}")
    for result in new.results:
        parts.append(f"Result of the call {result.id}:\n\n{result.output}")
    if new.text:
        parts.append(new.text)
    elif new.files:
        parts.append(", ".join(file.name for file in new.files))
    return "\n\n".join(parts)


def _line(group: UserInput | Answered) -> str:
    if isinstance(group, UserInput):
        results = (f"result: {result.output}" for result in group.results)
        return "\n".join(filter(None, (f"asker: {group.text}" if group.text else "", *results)))
    return f"you: {group.text or '(called tools)'}"


def said(message: Message) -> UserInput:
    """What a message of the asker's says."""
    content = message.content
    if not isinstance(content, dict):
        return UserInput(message.text.strip())
    text, results = content.get("text"), content.get("external_results")
    ids = [r["id"] for r in results if isinstance(r, dict)] if isinstance(results, list) else []
    told = tuple(ExternalResult(id=id, output="") for id in ids if isinstance(id, str))
    return UserInput(text if isinstance(text, str) else message.text.strip(), results=told)


def _before(message: Message) -> int:
    content = message.content
    found = content.get("before") if isinstance(content, dict) else None
    return found if isinstance(found, int) else 0
