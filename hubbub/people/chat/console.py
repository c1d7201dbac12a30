"""Where a person reads and types, and what stands beside the messages there."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Sequence
from datetime import tzinfo
from typing import Protocol, TextIO

from hubbub.client import Disconnected
from hubbub.clock import Clock
from hubbub.people.chat import slash
from hubbub.people.chat.completion import Candidate, candidates
from hubbub.people.chat.render import plain, render
from hubbub.people.chat.session import ChatSession
from hubbub.people.commands import Command, all_commands
from hubbub.people.shown import Line

__all__ = ["Console", "PipeConsole", "Status"]


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


# Without a terminal -------------------------------------------------------------------------------


UNLIMITED = 1_000_000
"""Columns: a script wants whole lines."""


class PipeConsole:
    """Reads a file descriptor (a pipe, a file, a socket) line by line and writes text."""

    patient = True

    def __init__(self, source: int, out: TextIO, zone: tzinfo | None = None):
        self._source, self._out, self._zone = source, out, zone
        self._pending = b""
        self._ended = False
        self._wake = asyncio.Event()

    def start(self, status: Status) -> None:
        """Nothing is shown beside the lines."""

    def refresh(self) -> None:
        """As `start`."""

    async def read(self) -> str | None:
        while b"\n" not in self._pending and not self._ended:
            await self._readable()
            if not self._ended:
                data = os.read(self._source, 65536)
                self._pending += data
                self._ended = not data
        line, _, self._pending = self._pending.partition(b"\n")
        if self._ended and not line and not self._pending:
            return None
        return line.decode(errors="replace")

    def show(self, lines: Sequence[Line]) -> None:
        try:
            for line in lines:
                self._out.write(plain(render(line, self._zone, UNLIMITED)) + "\n")
            self._out.flush()
        except BrokenPipeError:
            # Nobody reads any more (`hubbub chat | head`): as good as the end of the input.
            self._out = io.StringIO()
            self._pending, self._ended = b"", True
            self._wake.set()

    async def _readable(self) -> None:
        """Wait until reading does not block. A regular file never does."""
        loop = asyncio.get_running_loop()
        self._wake.clear()
        try:
            loop.add_reader(self._source, self._wake.set)
        except PermissionError:
            return  # what the selector says of regular files
        try:
            await self._wake.wait()
        finally:
            loop.remove_reader(self._source)
