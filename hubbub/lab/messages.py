"""The messages that a run of a network sends: those of a case, or of a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.protocol import thread_ids
from hubbub.protocol.messages import (
    Amendment,
    Attachment,
    Kind,
    Message,
    NewAttachment,
    Quote,
)

__all__ = ["RunMessage", "call_of"]


@dataclass(frozen=True, slots=True)
class RunMessage:
    """A message to send in a run."""

    sender: str
    kind: Kind
    thread: str
    """The canonical id in this network."""
    content: JsonValue
    shown: str | None = None
    """The content as text."""
    under: str | None = None
    """The message that it replies to."""
    mentions: tuple[str, ...] = ()
    untrusted: bool = False
    id: str = ""
    """The id of the recorded message."""
    quote: Quote | None = None
    attachments: tuple[Attachment, ...] = ()
    """Without files of the recorded network."""
    amends: Amendment | None = None

    @classmethod
    def of(cls, message: Message) -> RunMessage:
        """Repeat a recorded message."""
        kind: Kind = "agent" if message.sender_kind == "agent" else "human"
        content, shown = message.content, message.text_representation
        return cls(
            message.sender_id, kind, message.thread_id, content, shown, message.reply_to,
            message.mentions, message.untrusted, message.id, message.quote,
            tuple(a for a in message.attachments if not a.uri.lower().startswith("file:")),
            message.amends,
        )  # fmt: skip


def call_of(message: RunMessage, ids: Mapping[str, str]) -> tuple[str, dict[str, JsonValue]]:
    """The operation that sends the message, and its arguments. `ids` has the ids in the run of
    recorded messages."""
    if message.amends is not None:
        return _amendment(message, ids.get(message.amends.message_id, ""), message.amends.kind)
    content = message.content
    text = content if isinstance(content, str) else message.shown or "(no text)"
    marks = _marks(message, ids)
    args: dict[str, JsonValue] = {"text": text, **marks}
    if message.under is not None:
        return "reply", {"message_id": ids.get(message.under, message.under), **args}
    match thread_ids.kind_of(message.thread):
        case "channel":
            return "post_to_channel", {"channel": message.thread.partition(".")[2], **args}
        case "direct":
            to: list[JsonValue] = [
                m for m in thread_ids.members_of(message.thread) if m != message.sender
            ]
            if isinstance(content, str):
                return "send_text_message", {"to": to, **args}
            shown = {"content": content, "text_representation": message.shown}
            return "send_message", {"to": to, **shown, **marks}
        case _:
            return "broadcast_text_message", args


def _marks(message: RunMessage, ids: Mapping[str, str]) -> dict[str, JsonValue]:
    marks: dict[str, JsonValue] = {
        "mentions": list(message.mentions),
        "untrusted": message.untrusted,
        "attachments": [
            each.model_dump(include=set(NewAttachment.model_fields), exclude_none=True)
            for each in message.attachments
        ],
    }
    quote = message.quote
    if quote is not None and quote.message_id in ids:
        marks["quote"] = {"message_id": ids[quote.message_id], "text": quote.text}
    return marks


def _amendment(message: RunMessage, id: str, kind: str) -> tuple[str, dict[str, JsonValue]]:
    if kind == "deleted":
        return "delete_message", {"message_id": id}
    args: dict[str, JsonValue] = {"message_id": id, "untrusted": message.untrusted}
    if isinstance(message.content, str):
        return "edit_message", {"text": message.content, **args}
    shown = {"content": message.content, "text_representation": message.shown}
    return "edit_message", {**shown, **args}
