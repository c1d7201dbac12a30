"""What was seen of a network: by those who asked, by those who read, and on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import JsonValue

from hubbub.client import Client
from hubbub.errors import OperationError
from hubbub.protocol.frames import Event, Signal

__all__ = ["Asked", "Moment", "Reader", "Try", "Wiretap", "Written"]


class Moment(NamedTuple):
    step: int
    head: int
    """The end of the log."""


@dataclass
class Try:
    """A call on its way: it may be carried out between these moments."""

    sent: Moment
    done: Moment | None = None
    """None: nobody knows."""


@dataclass
class Asked:
    """A call of a person's, each time it was made, and what it was answered."""

    who: str
    name: str
    args: dict[str, JsonValue]
    cid: str
    tries: list[Try] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[OperationError] = field(default_factory=list)


@dataclass
class Reader:
    """What a person's machine keeps, whatever becomes of its program."""

    seen: dict[int, bytes] = field(default_factory=dict)
    """Its messages by position."""
    lives: list[list[int]] = field(default_factory=list)
    """The positions that each of its programs was handed."""
    began: int | None = None
    """The position after which it reads."""
    cursor: Any = None
    client: Client | None = None
    lags: int = 0
    """Events that it leaves unacknowledged."""
    unacknowledged: int = 0
    drafts: dict[str, tuple[str, int]] = field(default_factory=dict)
    """What agents are about to say, by turn: who, and in which step."""

    def begins(self) -> None:
        """A program of its has started, or is connected anew: what was ephemeral is gone."""
        self.drafts.clear()

    def sees(self, event: Event) -> bool:
        """Whether it has not seen another message there."""
        body = event.message.model_dump_json().encode()
        self.lives[-1].append(event.seq)
        self.drafts.pop(event.message.cause_id or "", None)
        return self.seen.setdefault(event.seq, body) == body

    def hears(self, signal: Signal) -> None:
        """Whose drafts begin and end, as the page has it."""
        data: Any = signal.data
        match signal.type:
            case "partial":
                self.drafts[data["turn"]] = str(signal.sender), data["step"]
            case "activity" if signal.thread_id is not None:
                _, step = self.drafts.get(data["turn"], ("", data["step"]))
                if data["state"] == "idle" or data["step"] > step:
                    self.drafts.pop(data["turn"], None)
            case "presence":
                for turn in [t for t, (who, _) in self.drafts.items() if who in data["offline"]]:
                    del self.drafts[turn]


class Written(NamedTuple):
    """A signal as the hub has written it."""

    at: Moment
    to: str
    type: str
    sender: str
    thread_id: str | None
    data: dict[str, Any]


class Wiretap:
    """Notes which signals with words in them the hub writes, and to whom."""

    _SIGNALS = tuple(b'{"op":"signal","type":"%s",' % type for type in (b"partial", b"overheard"))

    def __init__(self) -> None:
        self.signals: list[Written] = []

    def hear(self, frame: bytes, to: str, at: Callable[[], Moment]) -> None:
        if frame.startswith(self._SIGNALS):
            told = json.loads(frame)
            named = told["type"], told["sender"], told.get("thread_id"), told["data"]
            self.signals.append(Written(at(), to, *named))
