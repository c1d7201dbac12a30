"""What a person has said that the log does not have yet. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hubbub.cli.chat.commands import Mode
from hubbub.protocol.messages import Message, Quote

__all__ = ["Outbox", "Sending"]


@dataclass(frozen=True)
class Sending:
    """A message on its way to the hub."""

    cid: str
    thread_id: str
    text: str
    quote: Quote | None = None
    mode: Mode | None = None
    """What is wished for a turn that runs there."""
    failed: str | None = None
    """Why the hub refused it; None while it is on its way."""


class Outbox:
    """Messages without an answer, in the order they were said, and those that were refused."""

    def __init__(self) -> None:
        self._waiting: dict[str, Sending] = {}

    def __iter__(self) -> Iterator[Sending]:
        return iter(self._waiting.values())

    def add(self, sending: Sending) -> None:
        self._waiting[sending.cid] = sending

    def of(self, thread_id: str) -> list[Sending]:
        """Those of a thread."""
        return [sending for sending in self if sending.thread_id == thread_id]

    @property
    def under_way(self) -> int:
        """How many have no answer yet."""
        return sum(1 for sending in self if sending.failed is None)

    def done(self, cid: str) -> None:
        """It is in the log, or the person has given it up."""
        self._waiting.pop(cid, None)

    def refused(self, cid: str, why: str) -> None:
        if (sending := self._waiting.get(cid)) is not None:
            self._waiting[cid] = replace(sending, failed=why)

    def seen(self, message: Message) -> None:
        """One's own message came as an event before its answer did (after a reconnection): it must
        not stand there twice until then.
        """
        for sending in self:
            same = sending.thread_id == message.thread_id and sending.text == message.content
            if same and sending.failed is None:
                self.done(sending.cid)
                return
