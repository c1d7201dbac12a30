"""Questions to other participants that a handler waits for, and who gets the answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hubbub.agents.inbox import by_person
from hubbub.ids import message_id, turn_id
from hubbub.protocol.messages import Message

__all__ = ["Ask", "Asks", "answers"]


def answers(message: Message, seq: int, thread_id: str) -> bool:
    """Whether `message` answers the one at `seq` in that thread.

    It quotes it, stands under it, or is caused by it; an agent that answers several messages in one
    turn quotes the one that it means. People name no cause: what they say next in the thread is
    their answer.
    """
    asked = message_id(seq)
    if message.quote is not None:
        return message.quote.message_id == asked
    if by_person(message) and message.cause_id is None and message.reply_to is None:
        return message.thread_id == thread_id
    turn = turn_id(message.sender_id, seq)
    return message.reply_to == asked or message.cause_id in (asked, turn)


@dataclass(eq=False)
class Ask:
    """A question to `to`, which stands at `seq`; None until the hub has said where."""

    to: str
    answer: asyncio.Future[Message]
    seq: int | None = None
    thread_id: str = ""
    early: list[tuple[Message, asyncio.Future[bool]]] = field(default_factory=list)
    """What `to` has said since, while `seq` is not known."""

    def numbered(self, seq: int, thread_id: str) -> None:
        """The question stands at `seq`: judge what came early."""
        self.seq, self.thread_id = seq, thread_id
        for message, verdict in self.early:
            verdict.set_result(self.take(message))

    def take(self, message: Message) -> bool:
        """Whether the message is the answer; then it is handed over."""
        assert self.seq is not None, "judged when the question has a place"
        if self.answer.done() or not answers(message, self.seq, self.thread_id):
            return False
        self.answer.set_result(message)
        return True

    def over(self) -> None:
        """Nobody waits any more."""
        self.answer.cancel()
        for _, verdict in self.early:
            if not verdict.done():
                verdict.set_result(False)


class Asks:
    """The questions under way.

    At most one to each participant at a time: so the answers cannot be mistaken for each other,
    not even those of one who reads two questions and answers them in one go.
    """

    def __init__(self) -> None:
        self._open: dict[str, Ask] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def lock(self, to: str) -> asyncio.Lock:
        """To be held while `to` is asked."""
        return self._locks.setdefault(to, asyncio.Lock())

    def begin(self, to: str) -> Ask:
        """A question is about to be sent."""
        ask = self._open[to] = Ask(to, asyncio.get_running_loop().create_future())
        return ask

    def end(self, ask: Ask) -> None:
        del self._open[ask.to]
        ask.over()

    def claim(self, message: Message) -> asyncio.Future[bool] | None:
        """Whether the message is the answer to a question; the verdict may come later.

        None: certainly not.
        """
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
