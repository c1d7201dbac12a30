"""Lines as styled text, for a terminal and for a pipe. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import assert_never

from hubbub.people.messages import attachment_words, colour_of, marks, speaker
from hubbub.people.shown import Day, Elsewhere, Line, NoteLine, Opened, SaidLine, Tone
from hubbub.people.text import clip, columns, one_line, visible, wrap
from hubbub.protocol.messages import Message

__all__ = ["STYLES", "Fragments", "plain", "render"]

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
"""Every colour is readable on dark and on light (`people.messages`)."""
_TONES: dict[Tone, str] = {
    "info": "class:dim",
    "good": "class:good",
    "error": "class:error",
    "plain": "",
    "removed": "class:removed",
}
WIDTH = 100
_INDENT = " " * 6


def render(line: Line, zone: tzinfo | None = None, width: int = WIDTH) -> Fragments:
    """One line as fragments, without the line end. `zone` None: the machine's.

    What others wrote comes out with its control characters visible.
    """
    match line:
        case SaidLine():
            return _said(line, zone, width)
        case Elsewhere():
            return _elsewhere(line, zone, width)
        case Opened():
            return [("class:opened", f"── {line.thread} ──")]
        case Day():
            return [("class:dim", f"— {line.day:%a %d %B %Y} —")]
        case NoteLine():
            text = visible(line.text)
            shown = clip(text, width) if line.cut else wrap(text, width, _INDENT)
            return [(_TONES[line.tone], shown)]
        case _:
            assert_never(line)


def plain(fragments: Iterable[tuple[str, str]]) -> str:
    """The text alone."""
    return "".join(text for _, text in fragments)


def _said(said: SaidLine, zone: tzinfo | None, width: int) -> Fragments:
    message = said.message
    head: Fragments = [("class:dim", f"{_time(message, zone)} {message.id} ")]
    if message.sender_kind == "system":
        return [*head, ("class:dim", wrap(_body(message), width, _INDENT, columns(plain(head))))]
    head.append((f"{colour_of(message.sender_id)} bold", speaker(message)))
    if known := marks(message, zone):
        head.append(("class:dim", f" {known}"))
    head.append(("", ": "))
    state = " ✓" if said.mine else ""
    body = wrap(_body(message) + state, width, _INDENT, columns(plain(head)))
    below: Fragments = [("class:dim", f"\n{_INDENT}{said.reactions}")] if said.reactions else []
    if said.mentions_me:
        return [*head, *_highlighted(body, said.me, "class:mentioned"), *below]
    return [*head, ("", body.removesuffix(state)), ("class:dim", state), *below]


def _elsewhere(line: Elsewhere, zone: tzinfo | None, width: int) -> Fragments:
    message = line.message
    known = marks(message, zone)
    text = (
        f"{_time(message, zone)} {message.id} [{line.thread}] "
        f"{speaker(message)}{f' {known}' if known else ''}: {one_line(message.text)}"
    )
    mark, state = "! " if line.mentions_me else "", " ✓" if line.mine else ""
    style = "class:mentioned" if line.mentions_me else "class:dim"
    return [(style, mark + clip(text, width - len(mark + state)) + state)]


def _body(message: Message) -> str:
    parts = []
    if message.quote is not None:
        parts.append(f"> {one_line(message.quote.text)}")
    parts += visible(message.text).rstrip().split("\n")
    parts += map(attachment_words, message.attachments)
    return "\n".join(parts)


def _highlighted(text: str, me: str, base: str) -> Fragments:
    """The text with each @me set off."""
    pieces = re.split(rf"(@{re.escape(me)})(?![A-Za-z0-9_-])", text)
    marked = [("class:mention" if n % 2 else base, piece) for n, piece in enumerate(pieces)]
    return [(style, piece) for style, piece in marked if piece]


def _time(message: Message, zone: tzinfo | None) -> str:
    sent: datetime = message.sent_at.astimezone(zone)
    return f"{sent:%H:%M}"
