"""The wakes of one thread that wait for a turn."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from hubbub.agents.inbox.plan import Woken, by_person
from hubbub.protocol.amending import amended
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Message

__all__ = ["StillOpen", "WakeQueue"]


@dataclass(frozen=True, slots=True)
class StillOpen:
    """Of what was heard through an earlier connection: what has not ended at the hub meanwhile."""

    pending: Set[str]
    """Ids of the messages whose wakes are pending at the hub."""
    upto: int
    """The position that the hub spoke of; it says nothing about what comes after."""

    @classmethod
    def at(cls, ready: Ready) -> StillOpen:
        return cls({pending.message.id for pending in ready.pending}, ready.cursor)

    def has(self, message: Message) -> bool:
        return message.seq > self.upto or message.id in self.pending


@dataclass(slots=True)
class WakeQueue:
    """One turn at a time is made of them."""

    resumed: dict[str, list[Woken]] = field(default_factory=dict)
    """Turns that had begun before, by id: each is taken up exactly as it was."""
    collected: list[Woken] = field(default_factory=list)
    """The next new turn."""
    running: bool = False

    def next(self) -> list[Woken]:
        """The wakes of the next turn; empty if none waits."""
        return next(iter(self.resumed.values()), self.collected)

    @property
    def urgency(self) -> tuple[bool, int]:
        """Where a person waits goes first, then what has waited longest."""
        woken = self.next()
        return not any(by_person(w.message) for w in woken), min(w.message.seq for w in woken)

    def put(self, woken: Woken, started: str | None) -> None:
        """One more. `started`: the turn that had begun with it, if one had."""
        group = self.collected if started is None else self.resumed.setdefault(started, [])
        group.append(woken)

    def take(self) -> tuple[str | None, list[Woken]]:
        """The next turn's wakes, and its id if it had begun before."""
        if self.resumed:
            started = next(iter(self.resumed))
            return started, self.resumed.pop(started)
        woken, self.collected = self.collected, []
        return None, woken

    def amend(self, amendment: Message) -> None:
        """A message that waits here may have been edited."""
        self.collected = [_amended(woken, amendment) for woken in self.collected]
        for id, several in self.resumed.items():
            self.resumed[id] = [_amended(woken, amendment) for woken in several]

    def drop(self, turns: Set[str]) -> None:
        """These turns have ended before they began here."""
        self.collected = [w for w in self.collected if w.wake.turn not in turns]
        self.resumed = {id: woken for id, woken in self.resumed.items() if id not in turns}

    def keep(self, still: StillOpen) -> None:
        """Forget what has ended; of a turn that had begun before, all or nothing."""
        self.collected = [w for w in self.collected if still.has(w.message)]
        groups = self.resumed.items()
        self.resumed = {
            id: woken for id, woken in groups if any(still.has(w.message) for w in woken)
        }

    def __iter__(self) -> Iterator[Woken]:
        for woken in self.resumed.values():
            yield from woken
        yield from self.collected


def _amended(woken: Woken, amendment: Message) -> Woken:
    if amendment.amends is None or amendment.amends.message_id != woken.message.id:
        return woken
    return woken._replace(message=amended(woken.message, (amendment,)))
