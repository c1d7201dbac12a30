"""Details of a participant, a thread or a message, for the panel on the right. Pure."""

from __future__ import annotations

from datetime import tzinfo

from rich.style import Style
from rich.text import Text

from hubbub.cli.chat.colours import colour_of
from hubbub.cli.chat.text import clip, one_line, visible
from hubbub.cli.control.marks import marks
from hubbub.cli.control.story import receipt_words
from hubbub.cli.control.words import sums_words
from hubbub.cli.full.delivery import delivery, readers
from hubbub.cli.full.state import State
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message, Participant
from hubbub.protocol.operations import Receipt, Receipts

__all__ = ["doing", "facts", "message_card", "participant_card", "thread_card"]

MOST = 2000
"""Columns of a message in its card."""
_QUIET = Style(color="#878787")
_BOLD = Style(bold=True)
LONG_S = 2
"""Seconds after which it is told how long somebody has been at something."""


def doing(state: State, person: Participant, now: float) -> str:
    """`thinking 12 s`, `calling search`, `idle`, `away`; nothing about people who just are here."""
    if not person.present:
        return "away"
    found = state.activities.by_sender(now).get(person.id)
    if found is None:
        return "idle" if person.kind == "agent" else ""
    seconds = int(now - found.since)
    return f"{found.text} {_duration(seconds)}" if seconds >= LONG_S else found.text


def _duration(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"


def facts(title: str, rows: list[tuple[str, str]], style: Style = _BOLD) -> Text:
    """A title and lines of a name and a value, all of them made safe here."""
    text = Text().append(one_line(title), style=style)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        if value:
            text.append(f"\n{name:<{width}}  ", style=_QUIET).append(one_line(value))
    return text


def participant_card(state: State, name: str, now: float) -> Text:
    """Who somebody is."""
    person = state.participants.get(name)
    style = Style(bold=True, color=colour_of(name))
    if person is None:
        return facts(name, [("known", "no")], style)
    rows = [
        ("kind", person.kind + (" (you)" if name == state.me else "")),
        ("here", "yes" if person.present else "no"),
        ("doing", doing(state, person, now)),
        ("skills", ", ".join(person.card.skills)),
        ("today", _spent(state, name)),
    ]
    card = facts(name, rows, style)
    if person.card.description:
        card.append(f"\n\n{visible(person.card.description)}")
    return card


def _spent(state: State, name: str) -> str:
    """What an agent has spent today, or what was spent in a thread; empty if that is nothing."""
    sums = state.spent.get(name)
    return sums_words(sums) if sums is not None and sums.turns else ""


def thread_card(state: State, thread_id: str) -> Text:
    """What a thread is and who reads it."""
    thread = state.thread(thread_id)
    top = thread_ids.root(thread_id)
    channel = state.channels.get(top.partition(".")[2]) if top.startswith("channel.") else None
    rows = [
        ("id", thread_id),
        ("messages", str(thread.head)),
        ("unread", str(thread.unread) if thread.unread else ""),
        ("about", channel.description if channel else ""),
        ("with", ", ".join(readers(state, thread_id))),
        ("today", _spent(state, thread_id)),
    ]
    return facts(state.shown(thread_id), rows)


def message_card(
    state: State, message: Message, receipts: Receipts | None = None, zone: tzinfo | None = None
) -> Text:
    """Where a message stands, where it comes from, and what has become of it."""
    mine = message.sender_id == state.me
    rows = [
        ("from", f"{message.sender_id} ({message.sender_kind})"),
        ("spoken by", message.spoken_by or ""),
        ("marks", marks(message, zone)),
        ("in", f"{state.shown(message.thread_id)}, no. {message.tseq}"),
        ("sent", f"{message.sent_at.astimezone(zone):%Y-%m-%d %H:%M:%S}"),
        ("state", delivery(state, message) if mine else ""),
        ("mentions", ", ".join(message.mentions)),
        ("under", message.reply_to or ""),
        ("cause", message.cause_id or ""),
        ("set off by", message.interaction_id),
        ("hop", str(message.hop)),
    ]
    card = facts(message.id, rows)
    card.append("\n\n").append(clip(visible(message.text), MOST))
    if receipts is not None and receipts.receipts:
        told = [(r.participant, _receipt(r)) for r in receipts.receipts]
        card.append("\n\n").append(facts("readers", told))
    return card


def _receipt(receipt: Receipt) -> str:
    """`read`, `delivered`, `waits`; of an agent also why it was woken or not, and what it did."""
    if receipt.kind == "agent":
        return receipt_words(receipt)
    return "read" if receipt.read else "delivered" if receipt.delivered else "waits"
