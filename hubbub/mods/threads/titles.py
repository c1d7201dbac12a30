"""The title that a thread has of itself: how the message begins under which it stands."""

from __future__ import annotations

import re

__all__ = ["title_of"]

LONGEST = 80
"""Characters."""
_LOOKED_AT = 1_000
"""Characters of a text in which its first sentence is looked for."""
_MARKS = re.compile(r"^(?:[#>*+\-\s]+|\d+[.)]\s+)|[*_`~]{1,3}")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_SENTENCE = re.compile(r"(?<=[.!?…])\s|(?<=[。！？])")


def title_of(text: str) -> str | None:
    """The first sentence of a text in one line, without its Markdown; None if it has none."""
    for line in text[:_LOOKED_AT].splitlines():
        plain = " ".join(_MARKS.sub("", _LINK.sub(r"\1", line)).split())
        sentence = _SENTENCE.split(plain, maxsplit=1)[0]
        if sentence:
            return _cut(sentence)
    return None


def _cut(sentence: str) -> str:
    if len(sentence) <= LONGEST:
        return sentence
    words = sentence[: LONGEST - 1].rpartition(" ")[0]
    return f"{words if len(words) > LONGEST // 2 else sentence[: LONGEST - 1]}…"
