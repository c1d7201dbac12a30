"""What counts as one emoji, and how it is written.

The grammar is that of Unicode's UTS #51 (1.4.9), with the joined ones bound to four parts, which is
what the longest of the recommended ones have. Many emoji are text unless U+FE0F follows, and typed
with and without it; they are kept in the one form that the recommended ones have, so that the same
emoji is counted once.
"""

from __future__ import annotations

import regex

__all__ = ["MOST_CHARACTERS", "one_emoji"]

MOST_CHARACTERS = 24
"""Code points of the longest that is looked at; the recommended ones have up to 10."""

_SHOWN = "\ufe0f"
"""After a character that is text by itself: show it as an emoji."""
_PART = r"(?:[\p{Emoji}--[0-9\#*\p{RI}]](?:\p{Emoji_Modifier}|\uFE0F)?)"
_EMOJI = regex.compile(
    rf"""(?V1x)
      \p{{RI}}{{2}}                                                         # a country's flag
    | [0-9\#*]\uFE0F?\u20E3                                                # a keycap
    | \U0001F3F4[\U000E0030-\U000E0039\U000E0061-\U000E007A]{{1,8}}\U000E007F  # a region's flag
    | {_PART}(?:\u200D{_PART}){{0,3}}
    """
)
_TEXT_BY_ITSELF = regex.compile(
    r"(?V1)[\p{Emoji}--\p{Emoji_Presentation}](?![\uFE0F\p{Emoji_Modifier}])"
)


def one_emoji(text: str) -> str | None:
    """The emoji that the text is, as it is kept; None if it is anything else."""
    if len(text) > MOST_CHARACTERS or _EMOJI.fullmatch(text) is None:
        return None
    return _TEXT_BY_ITSELF.sub(rf"\g<0>{_SHOWN}", text.replace(_SHOWN, ""))
