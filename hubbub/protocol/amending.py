"""Edits and deletions, applied by whoever shows messages: the log keeps all as it was said."""

from __future__ import annotations

from collections.abc import Iterable

from hubbub.protocol.messages import Message

__all__ = ["amended"]


def amended(message: Message, amendments: Iterable[Message]) -> Message:
    """The message as it is shown after these, oldest first, which all amend it: with the content of
    the last edit, or with none once it was deleted."""
    for amendment in amendments:
        if amendment.amends is None or message.amended == "deleted":
            continue
        if amendment.amends.kind == "deleted":
            return _deleted(message)
        message = message.model_copy(
            update={
                "content": amendment.content,
                "text_representation": amendment.text_representation,
                "outside": message.outside or amendment.outside,
                "amended": "edited",
            }
        )
    return message


def _deleted(message: Message) -> Message:
    empty = {"content": "", "text_representation": None, "quote": None, "attachments": ()}
    return message.model_copy(update={**empty, "amended": "deleted"})
