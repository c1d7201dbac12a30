"""Where a person reads and types, and what stands beside the messages there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hubbub.client import Disconnected
from hubbub.clock import Clock
from hubbub.people.chat import slash
from hubbub.people.chat.completion import Candidate, candidates
from hubbub.people.chat.session import ChatSession
from hubbub.people.commands import Command, all_commands
from hubbub.people.shown import Line

__all__ = ["Console", "Status"]


class Status:
    """What stands beside the messages at a moment: for a prompt and a status line."""

    def __init__(self, session: ChatSession, clock: Clock):
        self.session = session
        self.network = ""
        self.sending = 0
        """Messages whose answer has not come yet."""
        self.carrying = ""
        """How far a file is on its way: `photo.png 40 %`."""
        self.lost: str | None = None
        """Why there is no connection."""
        self.others: Sequence[Command] = ()
        """Commands of mods that do not come with Hubbub."""
        self._retry_at = 0.0
        self._clock = clock

    def disconnected(self, item: Disconnected) -> None:
        self.lost = item.reason or f"closed with {item.code}"
        self._retry_at = self._clock.monotonic() + item.retry_in_s

    def connected(self) -> None:
        self.lost = None

    @property
    def prompt(self) -> str:
        return f"{self.session.shown(self.session.current)}> "

    def candidates(self, before: str) -> list[Candidate]:
        """The completions for a line that reads `before` up to the cursor."""
        everything = (*all_commands(), *self.others) if before.startswith("/") else ()
        commands = slash.offered(everything, self.session.offers)
        local = {name: each.help for name, each in slash.LOCAL.items()}
        return candidates(before, self.session, commands, local)

    def notices(self) -> list[tuple[str, str]]:
        """Parts of the status line: a kind (lost, unread, quiet) and a text."""
        parts: list[tuple[str, str]] = []
        if self.lost is not None:
            left = max(0.0, self._retry_at - self._clock.monotonic())
            when = f"trying again in {left:.0f} s" if left >= 1 else "trying again"
            waiting = f", {self.sending} to send" if self.sending else ""
            parts.append(("lost", f"not connected ({self.lost}), {when}{waiting}"))
        elif self.sending:
            parts.append(("quiet", "sending…"))
        if self.carrying:
            parts.append(("quiet", self.carrying))
        parts += self.session.oversight.status()
        if unread := self.session.unread:
            parts.append(("unread", "unread: " + ", ".join(unread)))
        doing = self.session.activities.now(self._clock.monotonic())
        if doing:
            parts.append(("quiet", ", ".join(doing)))
        return parts


class Console(Protocol):
    """Where a person reads and types."""

    def start(self, status: Status) -> None:
        """Called once, before anything is shown."""
        ...

    async def read(self) -> str | None:
        """The next line; None when there are no more."""
        ...

    def show(self, lines: Sequence[Line]) -> None: ...

    def refresh(self) -> None:
        """The status has changed."""
        ...

    @property
    def patient(self) -> bool:
        """Whether each line shall be done with before the next one is read (a script's input)."""
        ...
