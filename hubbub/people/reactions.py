"""Reactions below messages, as far as a client has heard of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, ValidationError

from hubbub.people.text import one_line
from hubbub.protocol.frames import Signal

__all__ = [
    "MOST",
    "ReactionChange",
    "ReactionCount",
    "ReactionState",
    "ReactionsBelow",
    "ReactionsPage",
]

MOST = 2000
"""Messages whose reactions are remembered."""


class ReactionCount(BaseModel):
    """How often one emoji stands below a message."""

    model_config = ConfigDict(frozen=True)

    emoji: str
    count: int


class ReactionsBelow(BaseModel):
    """What stands below one message."""

    model_config = ConfigDict(frozen=True)

    message_id: str
    reactions: tuple[ReactionCount, ...]

    @property
    def words(self) -> str:
        """`👍 2  🎉 1`; empty without any."""
        return "  ".join(f"{one_line(each.emoji)} {each.count}" for each in self.reactions)


class ReactionChange(ReactionsBelow):
    """What a signal of the mod `reactions` tells."""

    by: str
    emoji: str


class ReactionsPage(BaseModel):
    """What stands below several messages."""

    model_config = ConfigDict(frozen=True)

    messages: tuple[ReactionsBelow, ...]


class _Signal(BaseModel):
    kind: str
    data: ReactionChange


class ReactionState:
    """The reactions below messages."""

    def __init__(self) -> None:
        self._under: dict[str, str] = {}

    def of(self, message_id: str) -> str:
        """What stands below a message: `👍 2  🎉 1`, or nothing."""
        return self._under.get(message_id, "")

    def learn(self, under: Iterable[ReactionsBelow]) -> None:
        """The hub has told what stands below these messages."""
        for each in under:
            self._under.pop(each.message_id, None)
            if words := each.words:
                self._under[each.message_id] = words
        while len(self._under) > MOST:
            del self._under[next(iter(self._under))]

    def hear(self, signal: Signal) -> tuple[ReactionChange, str] | None:
        """A change, and `added` or `removed`; None if the signal tells of none."""
        if signal.type != "mod.reactions" or signal.sender != "hub":
            return None
        try:
            told = _Signal.model_validate(signal.data)
        except ValidationError:
            return None  # of a later version of the mod
        self.learn([told.data])
        return told.data, told.kind
