"""A thread as one person's client knows it, with edits and deletions applied. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from hubbub.protocol.messages import Message, amended

__all__ = ["KEPT", "ClientThread"]

KEPT = 500
"""Messages of a thread that are remembered."""


@dataclass
class ClientThread:
    """A thread as this person knows it."""

    id: str
    messages: dict[int, Message] = field(default_factory=dict)
    """By `tseq`, ascending, each as it is by now."""
    amendments: dict[int, Message] = field(default_factory=dict)
    """Edits and deletions of messages, by their `tseq`; by themselves they say nothing."""
    head: int = 0
    """`tseq` of the last message."""
    read: int = 0
    """`tseq` up to which the reader has read."""
    last_seq: int = 0
    mentions: set[int] = field(default_factory=set)
    """`tseq` of messages that mention the reader."""
    shown_from: int = 0
    """`tseq` of the oldest message shown since the thread was opened; 0 if none was."""
    more: bool = True
    """Whether the hub may have older messages than these."""

    def add(self, messages: Iterable[Message], me: str = "") -> None:
        concerned = set[str]()
        for message in messages:
            self.head = max(self.head, message.tseq)
            self.last_seq = max(self.last_seq, message.seq)
            if message.amends is not None:
                self.amendments[message.tseq] = message
                concerned.add(message.amends.message_id)
                continue
            self.messages[message.tseq] = message
            concerned.add(message.id)
            if me in message.mentions and message.sender_id != me:
                self.mentions.add(message.tseq)
        self.messages = dict(sorted(self.messages.items()))
        if self.amendments:
            self._amend(concerned)

    def _amend(self, concerned: Set[str]) -> None:
        """Show these messages as they are by now, as far as it is known here."""
        self.amendments = dict(sorted(self.amendments.items()))
        for tseq, message in self.messages.items():
            if message.id in concerned:
                self.messages[tseq] = amended(message, self.amendments_of(message.id))

    def amendments_of(self, message_id: str) -> list[Message]:
        """The edits and deletions of a message, oldest first."""
        found = self.amendments.values()
        return [each for each in found if each.amends and each.amends.message_id == message_id]

    def has(self, tseq: int) -> bool:
        """Whether what stands at a position is known."""
        return tseq in self.messages or tseq in self.amendments

    def append(self, message: Message, me: str = "") -> None:
        """A new message; the oldest one is forgotten when there are too many."""
        self.add([message], me)
        if len(self.messages) > KEPT:  # the hub has what is far back
            self.messages = dict(list(self.messages.items())[-KEPT:])
            later = ((n, each) for n, each in self.amendments.items() if n > self.first)
            self.amendments = dict(later)
            self.more = True

    @property
    def unread(self) -> int:
        """How many messages the reader has not read; edits and deletions are none."""
        silent = sum(1 for tseq in self.amendments if tseq > self.read)
        return max(0, self.head - self.read - silent)

    @property
    def count(self) -> int:
        """How many messages there are, without edits and deletions as far as they are known."""
        return self.head - len(self.amendments)

    @property
    def unread_mentions(self) -> int:
        """How many of them mention the reader."""
        return sum(1 for tseq in self.mentions if tseq > self.read)

    @property
    def mentioned(self) -> bool:
        """Whether something unread mentions the reader."""
        return self.unread_mentions > 0

    @property
    def last(self) -> Message | None:
        return next(reversed(self.messages.values()), None)

    @property
    def oldest(self) -> int:
        """`tseq` of the first message, edit or deletion that is known; 0 if none is."""
        firsts = (self.first, next(iter(self.amendments), 0))
        return min(filter(None, firsts), default=0)

    @property
    def first(self) -> int:
        """`tseq` of the first message that is known; 0 if none is."""
        return next(iter(self.messages), 0)
