"""What is to be known of a message besides who said it and what. Pure."""

from __future__ import annotations

from datetime import tzinfo

from hubbub.cli.chat.text import one_line
from hubbub.protocol.messages import Message

__all__ = ["marks", "speaker"]


def speaker(message: Message) -> str:
    """Who said it: `bob`, or `[ann as editor]` where ann spoke for the agent."""
    if message.spoken_by is None:
        return one_line(message.sender_id)
    return f"[{one_line(message.spoken_by)} as {one_line(message.sender_id)}]"


def marks(message: Message, zone: tzinfo | None = None) -> str:
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
                by = f" until {until.astimezone(zone):%H:%M}" if until is not None else ""
                found.append(f"[task{by}]")
            case "result":
                found.append(f"[result of {one_line(request.id)}]")
            case "failed":
                why = f": {one_line(request.outcome)}" if request.outcome else ""
                found.append(f"[{one_line(request.id)} failed{why}]")
    if message.mode is not None:
        found.append(f"[{message.mode}]")
    return " ".join(found)
