"""Reactions below messages, as far as a client has heard of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, ValidationError

from hubbub.cli.chat.text import one_line
from hubbub.protocol.frames import Signal

__all__ = ["MOST", "BelowMessages", "Change", "Count", "Reacted", "Under"]

MOST = 2000
"""Messages whose reactions are remembered."""


class Count(BaseModel):
    """How often one emoji stands below a message."""

    model_config = ConfigDict(frozen=True)

    emoji: str
    count: int


class Under(BaseModel):
    """What stands below one message."""

    model_config = ConfigDict(frozen=True)

    message_id: str
    reactions: tuple[Count, ...]

    @property
    def words(self) -> str:
        """`👍 2  🎉 1`; empty without any."""
        return "  ".join(f"{one_line(each.emoji)} {each.count}" for each in self.reactions)


class Change(Under):
    """What a signal of the mod `reactions` tells."""

    by: str
    emoji: str


class BelowMessages(BaseModel):
    """What stands below several messages."""

    model_config = ConfigDict(frozen=True)

    messages: tuple[Under, ...]


class _Told(BaseModel):
    kind: str
    data: Change


class Reacted:
    """The reactions below messages."""

    def __init__(self) -> None:
        self._under: dict[str, str] = {}

    def of(self, message_id: str) -> str:
        """What stands below a message: `👍 2  🎉 1`, or nothing."""
        return self._under.get(message_id, "")

    def learn(self, under: Iterable[Under]) -> None:
        """The hub has told what stands below these messages."""
        for each in under:
            self._under.pop(each.message_id, None)
            if words := each.words:
                self._under[each.message_id] = words
        while len(self._under) > MOST:
            del self._under[next(iter(self._under))]

    def hear(self, signal: Signal) -> tuple[Change, str] | None:
        """A change, and `added` or `removed`; None if the signal tells of none."""
        if signal.type != "mod.reactions" or signal.sender != "hub":
            return None
        try:
            told = _Told.model_validate(signal.data)
        except ValidationError:
            return None  # of a later version of the mod
        self.learn([told.data])
        return told.data, told.kind
