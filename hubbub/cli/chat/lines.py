"""What a chat shows, before anybody has decided how it looks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

from hubbub.protocol.messages import Message

__all__ = ["Day", "Elsewhere", "Line", "Note", "Opened", "Said", "Tone"]

Tone = Literal["info", "good", "error", "plain", "removed"]
"""plain: what somebody wants to read. removed: what is not there any more."""


@dataclass(frozen=True)
class Said:
    """A message of the current thread."""

    message: Message
    mine: bool = False
    mentions_me: bool = False
    me: str = ""
    reactions: str = ""
    """`👍 2`: what stands below it."""


@dataclass(frozen=True)
class Elsewhere:
    """A message of another thread, in one line."""

    message: Message
    thread: str
    """As the reader is shown it."""
    mentions_me: bool = False
    mine: bool = False


@dataclass(frozen=True)
class Opened:
    """From here on this thread is shown."""

    thread: str


@dataclass(frozen=True)
class Day:
    """What follows is of this day."""

    day: date


@dataclass(frozen=True)
class Note:
    """Something that the program itself says."""

    text: str
    tone: Tone = "info"
    cut: bool = False
    """One row of a list: cut at the edge of the terminal instead of continued below."""


Line = Said | Elsewhere | Opened | Day | Note
