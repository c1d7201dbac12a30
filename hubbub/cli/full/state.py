"""What the full-screen client shows, before anybody has decided how. Pure: time is passed in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from hubbub.cli.chat.known import Known
from hubbub.cli.full.outbox import Outbox, Sending
from hubbub.client import Disconnected, Incoming
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message, Quote
from hubbub.protocol.operations import SendResult
from hubbub.protocol.spending import Sums

__all__ = ["Draft", "State"]


@dataclass(frozen=True)
class Draft:
    """What somebody has begun to write in a thread."""

    text: str = ""
    quote: Quote | None = None

    def __bool__(self) -> bool:
        return bool(self.text.strip()) or self.quote is not None


@dataclass
class Connection:
    """Whether the hub is there."""

    lost: str | None = None
    """Why it is not."""
    retry_at: float = 0.0
    """When the next attempt is due (monotonic seconds)."""
    over: bool = False
    """Whether the hub closed for good."""

    def words(self, now: float) -> str:
        """`not connected (…), trying again in 3 s`; empty while connected."""
        if self.over:
            return f"the hub closed the connection: {self.lost}"
        if self.lost is None:
            return ""
        left = max(0.0, self.retry_at - now)
        when = f"trying again in {left:.0f} s" if left >= 1 else "trying again"
        return f"not connected ({self.lost}), {when}"


@dataclass
class Delivered:
    """How far each participant has got what was sent."""

    cursors: dict[str, int] = field(default_factory=dict)

    def take(self, data: object) -> None:
        """The `data` of a `delivered` signal: positions by participant."""
        for name, seq in data.items() if isinstance(data, dict) else ():
            if isinstance(seq, int):
                self.cursors[name] = max(seq, self.cursors.get(name, 0))

    def has(self, participant: str, seq: int) -> bool:
        return self.cursors.get(participant, 0) >= seq


class State(Known):
    """One person's full-screen client."""

    def __init__(self, me: str):
        super().__init__(me)
        self.network = ""
        self.connection = Connection()
        self.carrying = ""
        """How far a file is on its way: `photo.png 40 %`."""
        self.outbox = Outbox()
        self.delivered = Delivered()
        self.drafts: dict[str, Draft] = {}
        self.spent: dict[str, Sums] = {}
        """What was spent today, by agent or thread, as the hub was last asked."""
        self.new_from: int | None = None
        """`tseq` after which the open thread was unread when it was opened."""
        self.opening = False
        """Whether messages of the open thread are on their way, perhaps those that are new."""

    def apply(self, item: Incoming, now: float) -> None:
        """Something arrived at `now` (monotonic seconds)."""
        match item:
            case Ready():
                self.connection = Connection()
                if self.know(item) and self.current not in self.threads:
                    self.open(thread_ids.BROADCAST)
            case Event():
                self.note(item.message)
            case Signal():
                if item.type == "delivered":
                    self.delivered.take(item.data)
                self.hear(item, now)
            case Disconnected():
                why = item.reason or f"closed with {item.code}"
                self.connection = Connection(why, now + item.retry_in_s)
            case _:
                assert_never(item)

    def note(self, message: Message) -> bool:
        new = super().note(message)
        if new and message.sender_id == self.me:
            self.outbox.seen(message)
        return new

    def sent(self, sending: Sending, result: SendResult) -> None:
        """The hub has answered: the message is durable."""
        self.outbox.done(sending.cid)
        super().note(result.message)

    def open(self, thread_id: str) -> None:
        """Show a thread, which is `opening` until `opened`. It stays unread until it has been
        looked at (`Engine.looked_at`)."""
        thread = self.thread(thread_id)
        if thread_id != self.current and (left := self.threads.get(self.current)) is not None:
            left.trim()
        self.current = thread_id
        self.new_from = thread.read if thread.unread else None
        self.opening = True

    def opened(self, thread_id: str) -> None:
        """What there is to show of a thread is here."""
        if thread_id == self.current:
            self.opening = False

    def draft(self, thread_id: str, draft: Draft) -> None:
        """Keep what has been begun; an empty one is forgotten."""
        if draft:
            self.drafts[thread_id] = draft
        else:
            self.drafts.pop(thread_id, None)

    def mentioned(self, messages: Iterable[Message]) -> None:
        """Messages that mention this person, from the hub's list; they may stand further back than
        what is known of their threads."""
        for message in messages:
            if message.thread_id in self.threads:
                self.threads[message.thread_id].mentions.add(message.tseq)

    def parted(self, name: str) -> None:
        super().parted(name)
        if thread_ids.root(self.current) == thread_ids.channel(name):
            self.open(thread_ids.BROADCAST)
