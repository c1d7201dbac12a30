"""Consoles for a chat, the status line, and the rendering of lines."""

from __future__ import annotations

import asyncio
import io
import os
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol, TextIO, assert_never

from hubbub.client import Disconnected
from hubbub.clock import SystemClock
from hubbub.people.chat import slash
from hubbub.people.chat.completion import Candidate, candidates
from hubbub.people.chat.session import ChatSession
from hubbub.people.commands import Command, all_commands
from hubbub.people.messages import attachment_text, colour_of, marks, speaker
from hubbub.people.shown import (
    DayHeading,
    Line,
    MessageLine,
    NoteLine,
    OtherThreadLine,
    ThreadHeading,
    Tone,
)
from hubbub.people.text import clip, columns, one_line, visible, wrap
from hubbub.protocol.messages import Message

__all__ = ["STYLES", "Console", "Fragments", "PipeConsole", "Status", "plain", "render"]


class Status:
    """The data for the prompt and the status line."""

    def __init__(self, session: ChatSession):
        self.session = session
        self.network = ""
        self.sending = 0
        """The number of messages that the hub has not confirmed."""
        self.carrying = ""
        """The progress of a file transfer: `photo.png 40 %`."""
        self.lost: str | None = None
        """Why there is no connection; None: connected."""
        self.others: Sequence[Command] = ()
        """Commands of third-party mods."""
        self._retry_at = 0.0

    def disconnected(self, item: Disconnected) -> None:
        self.lost = item.reason or f"closed with {item.code}"
        self._retry_at = SystemClock.monotonic() + item.retry_in_s

    def connected(self) -> None:
        self.lost = None

    @property
    def prompt(self) -> str:
        return f"{self.session.shown(self.session.current)}> "

    def candidates(self, before: str) -> list[Candidate]:
        """The completions for the text before the cursor."""
        everything = (*all_commands(), *self.others) if before.startswith("/") else ()
        commands = slash.offered(everything, self.session.offers)
        local = {name: each.help for name, each in slash.LOCAL.items()}
        return candidates(before, self.session, commands, local)

    def notices(self) -> list[tuple[str, str]]:
        """Parts of the status line: a kind (lost, unread, quiet) and a text."""
        parts: list[tuple[str, str]] = []
        if self.lost is not None:
            left = max(0.0, self._retry_at - SystemClock.monotonic())
            when = f"reconnecting in {left:.0f} s" if left >= 1 else "reconnecting"
            waiting = f", {self.sending} unsent" if self.sending else ""
            parts.append(("lost", f"not connected ({self.lost}), {when}{waiting}"))
        elif self.sending:
            parts.append(("quiet", "sending…"))
        if self.carrying:
            parts.append(("quiet", self.carrying))
        parts += self.session.oversight.status()
        if unread := self.session.unread:
            parts.append(("unread", "unread: " + ", ".join(unread)))
        doing = self.session.activities.now(SystemClock.monotonic())
        if doing:
            parts.append(("quiet", ", ".join(doing)))
        return parts


class Console(Protocol):
    """Where the person types and lines are shown."""

    def start(self, status: Status) -> None:
        """Called once, before the first line."""
        ...

    async def read(self) -> str | None:
        """The next line; None at the end of the input."""
        ...

    def show(self, lines: Sequence[Line]) -> None: ...

    def refresh(self) -> None:
        """Redraw the status."""
        ...

    @property
    def patient(self) -> bool:
        """Whether to finish each line before reading the next one (a script's input)."""
        ...


# Without a terminal -------------------------------------------------------------------------------


UNLIMITED = 1_000_000
"""Columns: a script needs whole lines."""


class PipeConsole:
    """Reads lines from a file descriptor (a pipe, a file, a socket) and writes text."""

    patient = True

    def __init__(self, source: int, out: TextIO):
        self._source, self._out = source, out
        self._pending = b""
        self._ended = False
        self._wake = asyncio.Event()

    def start(self, status: Status) -> None:
        """Does nothing: there is no status line."""

    def refresh(self) -> None:
        """Does nothing, like `start`."""

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
                self._out.write(plain(render(line, UNLIMITED)) + "\n")
            self._out.flush()
        except BrokenPipeError:
            # The reader is gone (`hubbub chat | head`): treat it as the end of the input.
            self._out = io.StringIO()
            self._pending, self._ended = b"", True
            self._wake.set()

    async def _readable(self) -> None:
        """Wait until reading does not block. Regular files never block."""
        loop = asyncio.get_running_loop()
        self._wake.clear()
        try:
            loop.add_reader(self._source, self._wake.set)
        except PermissionError:
            return  # the selector's error for regular files
        try:
            await self._wake.wait()
        finally:
            loop.remove_reader(self._source)


Fragments = list[tuple[str, str]]
"""Pairs of a style (prompt_toolkit's notation) and a text."""

STYLES = {
    "dim": "fg:#878787",
    "good": "fg:#00875f",
    "error": "fg:#d75f5f bold",
    "removed": "fg:#d75f5f",
    "opened": "bold",
    "mention": "bold reverse",
    "mentioned": "bold",
    "bottom-toolbar": "noreverse fg:#878787",
    "toolbar.unread": "fg:#af8700 bold",
    "toolbar.lost": "fg:#d75f5f bold",
    "prompt": "bold",
}
"""All colours are readable on dark and light backgrounds (`people.messages`)."""
_TONES: dict[Tone, str] = {
    "info": "class:dim",
    "good": "class:good",
    "error": "class:error",
    "plain": "",
    "removed": "class:removed",
}
WIDTH = 100
_INDENT = " " * 6


def render(line: Line, width: int = WIDTH) -> Fragments:
    """A line as fragments, without the line end.

    Control characters in text by others are made visible.
    """
    match line:
        case MessageLine():
            return _message(line, width)
        case OtherThreadLine():
            return _other_thread(line, width)
        case ThreadHeading():
            return [("class:opened", f"── {line.thread} ──")]
        case DayHeading():
            return [("class:dim", f"— {line.day:%a %d %B %Y} —")]
        case NoteLine():
            text = visible(line.text)
            shown = clip(text, width) if line.cut else wrap(text, width, _INDENT)
            return [(_TONES[line.tone], shown)]
        case _:
            assert_never(line)


def plain(fragments: Iterable[tuple[str, str]]) -> str:
    """The fragments' text without styles."""
    return "".join(text for _, text in fragments)


def _message(line: MessageLine, width: int) -> Fragments:
    message = line.message
    head: Fragments = [("class:dim", f"{_time(message)} {message.id} ")]
    if message.sender_kind == "system":
        return [*head, ("class:dim", wrap(_body(message), width, _INDENT, columns(plain(head))))]
    head.append((f"{colour_of(message.sender_id)} bold", speaker(message)))
    if marked := marks(message):
        head.append(("class:dim", f" {marked}"))
    head.append(("", ": "))
    state = " ✓" if line.mine else ""
    body = wrap(_body(message) + state, width, _INDENT, columns(plain(head)))
    below: Fragments = [("class:dim", f"\n{_INDENT}{line.reactions}")] if line.reactions else []
    if line.mentions_me:
        return [*head, *_highlighted(body, line.me, "class:mentioned"), *below]
    return [*head, ("", body.removesuffix(state)), ("class:dim", state), *below]


def _other_thread(line: OtherThreadLine, width: int) -> Fragments:
    message = line.message
    marked = marks(message)
    text = (
        f"{_time(message)} {message.id} [{line.thread}] "
        f"{speaker(message)}{f' {marked}' if marked else ''}: {one_line(message.text)}"
    )
    mark, state = "! " if line.mentions_me else "", " ✓" if line.mine else ""
    style = "class:mentioned" if line.mentions_me else "class:dim"
    return [(style, mark + clip(text, width - len(mark + state)) + state)]


def _body(message: Message) -> str:
    parts = []
    if message.quote is not None:
        parts.append(f"> {one_line(message.quote.text)}")
    parts += visible(message.text).rstrip().split("\n")
    parts += map(attachment_text, message.attachments)
    return "\n".join(parts)


def _highlighted(text: str, me: str, base: str) -> Fragments:
    """The text with each @me highlighted."""
    pieces = re.split(rf"(@{re.escape(me)})(?![A-Za-z0-9_-])", text)
    marked = [("class:mention" if n % 2 else base, piece) for n, piece in enumerate(pieces)]
    return [(style, piece) for style, piece in marked if piece]


def _time(message: Message) -> str:
    sent: datetime = message.sent_at.astimezone()
    return f"{sent:%H:%M}"
