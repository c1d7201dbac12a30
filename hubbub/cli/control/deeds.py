"""What a person in charge asks for, however it was typed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue

if TYPE_CHECKING:
    from hubbub.protocol.control import StopScope

__all__ = [
    "Approvals",
    "Approve",
    "Breakers",
    "Deed",
    "Deny",
    "HandBack",
    "Interaction",
    "Release",
    "Requests",
    "Resume",
    "SpeakAs",
    "Spending",
    "Stop",
    "Stops",
    "TakeOver",
    "Why",
]


@dataclass(frozen=True)
class Stop:
    scope: StopScope | None = None
    """None: the turn that runs in the open thread."""
    target: str | None = None
    """As somebody types it; None: what runs or is open here."""
    reason: str = ""


@dataclass(frozen=True)
class Resume:
    scope: StopScope | None = None
    """None: the only thing that is stopped."""
    target: str | None = None


@dataclass(frozen=True)
class Stops:
    """What is stopped, latched and taken over."""


@dataclass(frozen=True)
class Breakers:
    """The threads that the breaker has latched."""


@dataclass(frozen=True)
class Release:
    thread: str | None = None
    """None: the only one that is latched."""


@dataclass(frozen=True)
class Approvals:
    everything: bool = False
    """Those that are decided, too."""


@dataclass(frozen=True)
class Approve:
    name: str
    """The approval's id, or a part of it that no other has."""
    arguments: dict[str, JsonValue] | None = None
    """In place of those that were asked for."""


@dataclass(frozen=True)
class Deny:
    name: str
    reason: str = ""


@dataclass(frozen=True)
class TakeOver:
    agent: str
    minutes: float | None = None
    """None: as long as the hub gives."""


@dataclass(frozen=True)
class HandBack:
    agent: str | None = None
    """None: the only one that this person speaks for."""


@dataclass(frozen=True)
class SpeakAs:
    agent: str
    text: str


@dataclass(frozen=True)
class Spending:
    agent: str | None = None
    thread: str | None = None
    days: int = 1


@dataclass(frozen=True)
class Requests:
    everything: bool = False
    """Those that are over, too."""


@dataclass(frozen=True)
class Why:
    message: str
    agent: str | None = None
    """Only this agent's part of the story."""


@dataclass(frozen=True)
class Interaction:
    id: str | None = None
    """Its id, or that of a message of it; None: what was last set in motion in the open thread."""


Deed = (
    Stop
    | Resume
    | Stops
    | Breakers
    | Release
    | Approvals
    | Approve
    | Deny
    | TakeOver
    | HandBack
    | SpeakAs
    | Spending
    | Requests
    | Why
    | Interaction
)
