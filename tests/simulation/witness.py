"""Records of a network: calls with their answers, events that people received, and signals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import JsonValue

from hubbub.client import Client
from hubbub.errors import OperationError
from hubbub.protocol.frames import Event, Signal

__all__ = ["Asked", "Moment", "Reader", "SentSignal", "Try", "Wiretap"]


class Moment(NamedTuple):
    step: int
    head: int
    """The end of the log."""


@dataclass
class Try:
    """A call in flight, executed at some point between these moments."""

    sent: Moment
    done: Moment | None = None
    """None if unknown."""


@dataclass
class Asked:
    """A person's call, with each try and answer."""

    who: str
    name: str
    args: dict[str, JsonValue]
    cid: str
    tries: list[Try] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[OperationError] = field(default_factory=list)


@dataclass
class Reader:
    """The state on a person's machine, which survives the program."""

    seen: dict[int, bytes] = field(default_factory=dict)
    """Its messages by position."""
    lives: list[list[int]] = field(default_factory=list)
    """The positions that each run of the program received."""
    began: int | None = None
    """The position after which it reads."""
    cursor: Any = None
    client: Client | None = None
    lags: int = 0
    """The number of events it leaves unacknowledged."""
    unacknowledged: int = 0
    drafts: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The agents' drafts, by turn: agent and step."""

    def begin(self) -> None:
        """The program has started or reconnected, which drops ephemeral state."""
        self.drafts.clear()

    def receive(self, event: Event) -> bool:
        """Returns False if it received a different message at this position before."""
        body = event.message.model_dump_json().encode()
        self.lives[-1].append(event.seq)
        self.drafts.pop(event.message.cause_id or "", None)
        return self.seen.setdefault(event.seq, body) == body

    def update(self, signal: Signal) -> None:
        """Updates the drafts as the page does."""
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


class SentSignal(NamedTuple):
    """A signal as written by the hub."""

    at: Moment
    to: str
    type: str
    sender: str
    thread_id: str | None
    data: dict[str, Any]


class Wiretap:
    """Records the hub's signals that contain text, and their recipients."""

    _SIGNALS = tuple(b'{"op":"signal","type":"%s",' % type for type in (b"partial", b"overheard"))

    def __init__(self) -> None:
        self.signals: list[SentSignal] = []

    def record(self, frame: bytes, to: str, at: Callable[[], Moment]) -> None:
        if frame.startswith(self._SIGNALS):
            signal = json.loads(frame)
            fields = signal["type"], signal["sender"], signal.get("thread_id"), signal["data"]
            self.signals.append(SentSignal(at(), to, *fields))
