"""What a quote says, held against the message that it quotes."""

from __future__ import annotations

import re

from hubbub.protocol.messages import Message, Quote

__all__ = ["excerpt_of", "stands_in", "why_not"]

_ELLIPSES = "….. "
"""What may stand after words that were cut."""
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_NO_WORD = re.compile(r"[\W_]+")


def excerpt_of(text: str, longest: int) -> str:
    """How a text begins: whole words, as far as `longest` characters go."""
    text = text.strip()
    if len(text) <= longest:
        return text
    words = text[: longest + 1].rpartition(" ")[0].rstrip()
    return words if len(words) > longest // 2 else text[:longest]


def stands_in(quote: str, text: str) -> bool:
    """Whether the words of a quote stand in the text, in this order and without others between.

    What is selected where Markdown is shown has none of its marks, so only words count, and what
    was cut may end with an ellipsis.
    """
    bare = quote.strip().rstrip(_ELLIPSES) or quote.strip()
    if bare in text:
        return True
    words = _words(bare)
    return bool(words) and (words in _words(text) or words in _words(_LINK.sub(r"\1", text)))


def _words(text: str) -> str:
    return _NO_WORD.sub(" ", text).strip()


def why_not(message: Message, quote: Quote) -> str | None:
    """Why a message cannot be quoted so; None if it can."""
    if message.amends is not None:
        of = message.amends.message_id
        return f"quote: {message.id} only changes {of}: quote {of} itself"
    if message.amended == "deleted":
        return f"quote: {message.id} was deleted"
    if quote.text.strip() and not stands_in(quote.text, message.text):
        return f"quote: these words do not stand in {message.id}; leave them out to quote its start"
    return None
