"""Messages as text for a terminal: sender, place, marks and attachments."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING
from zlib import crc32

from hubbub.people.figures import size_text
from hubbub.people.text import one_line, visible
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Attachment, Message

if TYPE_CHECKING:
    from rich.text import Text

__all__ = [
    "PALETTE",
    "amendment_text",
    "attachment_text",
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
"""Terminal colours, of the 256, with a contrast of at least 3 to both black and white (tested)."""


def colour_of(participant: str) -> str:
    """The participant's colour as #rrggbb."""
    return PALETTE[crc32(participant.encode()) % len(PALETTE)]


def speaker(message: Message) -> str:
    """The sender: `bob`, or `[ann as editor]` if ann spoke for the agent."""
    if message.sent_by is None:
        return one_line(message.sender_id)
    return f"[{one_line(message.sent_by)} as {one_line(message.sender_id)}]"


def marks(message: Message) -> str:
    """`[untrusted] [task until 12:30]`; empty for most messages."""
    parts = ["[untrusted]"] if message.untrusted else []
    if message.amended is not None:
        parts.append(f"[{message.amended}]")
    if (amends := message.amends) is not None:
        parts.append(f"[{'edits' if amends.kind == 'edited' else 'deletes'} {amends.message_id}]")
    if (request := message.request) is not None:
        match request.kind:
            case "task":
                until = request.deadline
                by = f" until {until.astimezone():%H:%M}" if until is not None else ""
                parts.append(f"[task{by}]")
            case "result":
                parts.append(f"[result of {one_line(request.id)}]")
            case "question" | "reply":
                parts.append(f"[{request.kind} about {one_line(request.id)}]")
            case "failed":
                why = f": {one_line(request.outcome)}" if request.outcome else ""
                parts.append(f"[{one_line(request.id)} failed{why}]")
    if message.mode is not None:
        parts.append(f"[{message.mode}]")
    return " ".join(parts)


def amendment_text(amendment: Message) -> str:
    """`m5 ann edited: new text`, `m5 ann deleted it`. The text is not made safe here."""
    assert amendment.amends is not None, "is an amendment"
    head = f"{amendment.amends.message_id} {speaker(amendment)}"
    if amendment.amends.kind == "deleted":
        return f"{head} deleted it"
    return f"{head} edited: {amendment.text.rstrip()}"


def file_id(attachment: Attachment) -> str | None:
    """The id of a file of this network; None for other URIs."""
    match = _OURS.fullmatch(attachment.uri)
    return None if match is None else match[1]


def attachment_text(attachment: Attachment) -> str:
    """`[f3 notes.md, text/markdown, 1.2 kB]`; for other URIs the URI. Safe to show."""
    name, file = one_line(attachment.name), file_id(attachment)
    if file is None:
        return f"[{name}: {one_line(attachment.uri)}]"
    if attachment.gone:
        return f"[{one_line(file)} {name}, deleted]"
    parts = [f"{one_line(file)} {name}", one_line(attachment.media_type)]
    if attachment.size is not None:
        parts.append(size_text(attachment.size))
    return f"[{', '.join(parts)}]"


def where(message: Message) -> str:
    """The destination from the sender's side: `→ bob`, `#general`, `→ everyone ↳ m13`."""
    top = thread_ids.root(message.thread_id)
    match message.type:
        case "direct":
            others = [m for m in thread_ids.members_of(top) if m != message.sender_id]
            place = f"→ {', '.join(others)}"
        case "channel":
            place = f"#{top.partition('.')[2]}"
        case "broadcast":
            place = "→ everyone"
        case "mod":
            place = f"[{top.partition('.')[2]}]"
    replies = message.thread_id.removeprefix(top).rpartition(".t")[2]
    under = f"m{replies}" if replies else message.reply_to
    return f"{place} ↳ {under}" if under else place


def message_line(message: Message, shown: str | None = None) -> Text:
    """`12:03:04 m7 ann → bob  text`; further lines of the text are indented.

    `shown` replaces the text, if given.
    """
    from rich.text import Text

    colour = "dim" if message.sender_kind == "system" else colour_of(message.sender_id)
    line = Text()
    line.append(f"{clock_time(message.sent_at)} {message.id} ", style="dim")
    line.append(speaker(message), style=colour if colour == "dim" else f"bold {colour}")
    suffix = marks(message)
    line.append(f" {where(message)}{f' {suffix}' if suffix else ''}  ", style="dim")
    if shown is None:
        line.append(visible(message.text).replace("\n", "\n    "))
    else:
        line.append(shown)
    return line


def clock_time(moment: datetime) -> str:
    """The local time of day."""
    return moment.astimezone().strftime("%H:%M:%S")
