"""One turn: what has woken the agent, and how much of that it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from hubbub.protocol.messages import Message, ReplyNeed, Wake

__all__ = ["MOST_INCOMING", "TurnPlan", "Woken", "by_person"]

MOST_INCOMING = 20
"""Messages that one turn is shown as incoming."""


def by_person(message: Message) -> bool:
    """Whether a person says it, in its own name or for an agent."""
    return message.sender_kind == "human" or message.spoken_by is not None


class Woken(NamedTuple):
    """A message, and what it asks of the agent that it wakes."""

    message: Message
    wake: Wake


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """A turn that may start now."""

    id: str
    thread_id: str
    incoming: tuple[Message, ...]
    """All messages that woke the agent, oldest first."""
    reasons: tuple[str, ...]
    """The reason code of each wake, in the order of `incoming`."""
    reply_required: bool
    resumed: bool = False
    """It had begun before: the hub has what it did."""
    waited: bool = False
    """It had begun in this process, and stopped to wait for a person."""

    @classmethod
    def of(cls, woken: Iterable[Woken], started: str | None, *, waited: bool = False) -> TurnPlan:
        """One turn for these wakes of one thread. `started` is its id if it had begun before; a new
        one is named by the wake with the lowest hop, the oldest of those.
        """
        ordered = sorted(woken, key=lambda w: w.message.seq)
        primary = min(ordered, key=lambda w: (w.message.hop, w.message.seq))
        return cls(
            id=started or primary.wake.turn,
            thread_id=primary.message.thread_id,
            incoming=tuple(w.message for w in ordered),
            reasons=tuple(w.wake.reason for w in ordered),
            reply_required=any(w.wake.reply == "required" for w in ordered),
            resumed=started is not None,
            waited=waited,
        )

    @property
    def woken(self) -> list[Woken]:
        """The wakes that it began with, as far as the turn needs to know them."""
        reply: ReplyNeed = "required" if self.reply_required else "optional"
        return [
            Woken(message, Wake(reason=reason, reply=reply, turn=self.id))
            for message, reason in zip(self.incoming, self.reasons, strict=True)
        ]

    @property
    def shown(self) -> tuple[Message, ...]:
        """The incoming messages that a prompt shows: people's first, then the newest; in order."""
        if len(self.incoming) <= MOST_INCOMING:
            return self.incoming
        ranked = sorted(self.incoming, key=lambda m: (not by_person(m), -m.seq))
        return tuple(sorted(ranked[:MOST_INCOMING], key=attrgetter("seq")))

    @property
    def omitted(self) -> int:
        """How many of the incoming messages are not shown."""
        return max(0, len(self.incoming) - MOST_INCOMING)

    def without(self, ids: Set[str]) -> TurnPlan:
        """The same turn as if these messages had not woken the agent."""
        kept = [(m, r) for m, r in zip(self.incoming, self.reasons, strict=True) if m.id not in ids]
        if not kept:
            return self
        incoming, reasons = zip(*kept, strict=True)
        return replace(self, incoming=incoming, reasons=reasons)
