"""A message as a line in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.cli.chat.colours import colour_of
from hubbub.cli.chat.text import visible
from hubbub.cli.control.marks import marks, speaker
from hubbub.cli.output import clock_time
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["message_line", "where"]


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
