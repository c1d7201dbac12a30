"""Edits and deletions, as they are told when they happen. Pure."""

from __future__ import annotations

from hubbub.cli.control.marks import speaker
from hubbub.protocol.messages import Message

__all__ = ["amendment_words"]


def amendment_words(amendment: Message) -> str:
    """`m5 ann edited: what it says now`, `m5 ann deleted it`. What it says is as it was written."""
    assert amendment.amends is not None, "is an amendment"
    head = f"{amendment.amends.message_id} {speaker(amendment)}"
    if amendment.amends.kind == "deleted":
        return f"{head} deleted it"
    return f"{head} edited: {amendment.text.rstrip()}"
