"""What is new in a thread for one reader. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.mods.digest.words import Line, Speaker, ThreadDigest, Waiting
from hubbub.protocol.messages import Message

__all__ = ["New", "in_short", "line", "question", "told"]

SHORT = 200
"""Characters of a message that a digest shows."""
MOST_SPEAKERS = 10


@dataclass(frozen=True, slots=True)
class New:
    """What is new in a thread; at least one message of others."""

    messages: Sequence[Message]
    """Those of others, oldest first."""
    said: Sequence[Message]
    """All of them, the reader's own, too."""
    counted: bool
    """Whether these are all of them."""
    spoke: bool
    """Whether the reader has said something after them."""


def told(new: New, reader: str) -> ThreadDigest:
    messages = new.messages
    speakers = Counter(message.sender_id for message in messages).most_common(MOST_SPEAKERS)
    return ThreadDigest(
        thread_id=messages[0].thread_id,
        type=messages[0].type,
        count=len(messages),
        counted=new.counted,
        speakers=tuple(Speaker(id=id, count=count) for id, count in speakers),
        mentions=sum(reader in message.mentions for message in messages),
        first=line(messages[0]),
        last=line(messages[-1]),
    )


def line(message: Message) -> Line:
    return Line(
        id=message.id,
        by=message.sender_id,
        at=message.sent_at,
        text=in_short(message.text),
        outside=message.outside,
    )


def in_short(text: str) -> str:
    """The beginning, in one line."""
    short = " ".join(text[: SHORT * 2].split())
    return short if len(short) <= SHORT else f"{short[: SHORT - 1]}…"


def question(new: New, reader: str) -> Waiting | None:
    """The last of the messages that asks the reader something, if it has said nothing since."""
    if new.spoke:
        return None
    for message in reversed(new.messages):
        to_reader = message.type == "direct" or reader in message.mentions
        if to_reader and message.sender_kind != "system" and "?" in message.text:
            return Waiting(
                kind="question",
                id=message.id,
                thread_id=message.thread_id,
                by=message.sender_id,
                text=in_short(message.text),
            )
    return None
