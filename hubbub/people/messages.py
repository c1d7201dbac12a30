"""How a message reads in a terminal: who said it, where, and what is to be known of it besides."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING
from zlib import crc32

from hubbub.people.figures import size_words
from hubbub.people.text import one_line, visible
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Attachment, Message

if TYPE_CHECKING:
    from rich.text import Text

__all__ = [
    "PALETTE",
    "amendment_words",
    "attachment_words",
    "colour_of",
    "file_id",
    "marks",
    "message_line",
    "speaker",
    "where",
]

_OURS = re.compile(r"file:(f[1-9]\d*)")

PALETTE = (
    "#0087d7",
    "#d75f5f",
    "#5f8700",
    "#af5fd7",
    "#af8700",
    "#008787",
    "#d75f87",
    "#5f87af",
    "#d75f00",
    "#00875f",
    "#875fd7",
    "#af5f5f",
)
"""Of the 256 colours of terminals, some that differ enough from black and from white: a contrast
of at least 3 to both (a test computes it)."""


def colour_of(participant: str) -> str:
    """The participant's colour as #rrggbb."""
    return PALETTE[crc32(participant.encode()) % len(PALETTE)]


def speaker(message: Message) -> str:
    """Who said it: `bob`, or `[ann as editor]` where ann spoke for the agent."""
    if message.spoken_by is None:
        return one_line(message.sender_id)
    return f"[{one_line(message.spoken_by)} as {one_line(message.sender_id)}]"


def marks(message: Message) -> str:
    """`[outside] [task until 12:30]`; empty for most messages."""
    found = ["[outside]"] if message.outside else []
    if message.amended is not None:
        found.append(f"[{message.amended}]")
    if (amends := message.amends) is not None:
        found.append(f"[{'edits' if amends.kind == 'edited' else 'deletes'} {amends.message_id}]")
    if (request := message.request) is not None:
        match request.kind:
            case "task":
                until = request.deadline
                by = f" until {until.astimezone():%H:%M}" if until is not None else ""
                found.append(f"[task{by}]")
            case "result":
                found.append(f"[result of {one_line(request.id)}]")
            case "question" | "reply":
                found.append(f"[{request.kind} about {one_line(request.id)}]")
            case "failed":
                why = f": {one_line(request.outcome)}" if request.outcome else ""
                found.append(f"[{one_line(request.id)} failed{why}]")
    if message.mode is not None:
        found.append(f"[{message.mode}]")
    return " ".join(found)


def amendment_words(amendment: Message) -> str:
    """`m5 ann edited: what it says now`, `m5 ann deleted it`. What it says is as it was written."""
    assert amendment.amends is not None, "is an amendment"
    head = f"{amendment.amends.message_id} {speaker(amendment)}"
    if amendment.amends.kind == "deleted":
        return f"{head} deleted it"
    return f"{head} edited: {amendment.text.rstrip()}"


def file_id(attachment: Attachment) -> str | None:
    """The id of a file of this network; None for what lies elsewhere."""
    found = _OURS.fullmatch(attachment.uri)
    return None if found is None else found[1]


def attachment_words(attachment: Attachment) -> str:
    """`[f3 notes.md, text/markdown, 1.2 kB]`; of what lies elsewhere its address. Safe to show."""
    name, file = one_line(attachment.name), file_id(attachment)
    if file is None:
        return f"[{name}: {one_line(attachment.uri)}]"
    if attachment.gone:
        return f"[{one_line(file)} {name}, deleted]"
    known = [f"{one_line(file)} {name}", one_line(attachment.media_type)]
    if attachment.size is not None:
        known.append(size_words(attachment.size))
    return f"[{', '.join(known)}]"


def where(message: Message) -> str:
    """To whom it goes, as the sender's side reads: `→ bob`, `#general`, `→ everybody ↳ m13`."""
    top = thread_ids.root(message.thread_id)
    match message.type:
        case "direct":
            others = [m for m in thread_ids.members_of(top) if m != message.sender_id]
            place = f"→ {', '.join(others)}"
        case "channel":
            place = f"#{top.partition('.')[2]}"
        case "broadcast":
            place = "→ everybody"
        case "mod":
            place = f"[{top.partition('.')[2]}]"
    replies = message.thread_id.removeprefix(top).rpartition(".t")[2]
    under = f"m{replies}" if replies else message.reply_to
    return f"{place} ↳ {under}" if under else place


def message_line(message: Message, shown: str | None = None) -> Text:
    """`12:03:04 m7 ann → bob  text`; further lines of the text are indented.

    `shown` stands in the place of the text, if it is given.
    """
    from rich.text import Text

    colour = "dim" if message.sender_kind == "system" else colour_of(message.sender_id)
    line = Text()
    line.append(f"{clock_time(message.sent_at)} {message.id} ", style="dim")
    line.append(speaker(message), style=colour if colour == "dim" else f"bold {colour}")
    known = marks(message)
    line.append(f" {where(message)}{f' {known}' if known else ''}  ", style="dim")
    if shown is None:
        line.append(visible(message.text).replace("\n", "\n    "))
    else:
        line.append(shown)
    return line


def clock_time(moment: datetime) -> str:
    """The local time of day."""
    return moment.astimezone().strftime("%H:%M:%S")
