"""The mod `moderation`: messages that are too long or use forbidden words.

mods:
  - moderation: {max_length: 4000, words: [badword], on_word: mask}
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.protocol.messages import Draft

__all__ = ["Moderation", "ModerationConfig"]


class ModerationConfig(ModConfig):
    max_length: Annotated[int, Field(ge=1)] | None = None
    """Characters of a text; longer ones are rejected."""
    words: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Whole words, in any case."""
    on_word: Literal["reject", "mask"] = "reject"
    """mask: the word is replaced by asterisks and the message goes on."""


class Moderation(Mod):
    """Length and word rules for everybody but the hub itself."""

    name = "moderation"
    Config = ModerationConfig
    config: ModerationConfig

    def __init__(self, config: ModerationConfig):
        super().__init__(config)
        self._max_length = sys.maxsize if config.max_length is None else config.max_length
        words = "|".join(re.escape(word) for word in sorted(config.words, key=len, reverse=True))
        self._words = re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE) if words else None

    def on_message(self, draft: Draft) -> Verdict:
        if draft.sender_kind == "system":
            return PASS
        texts = [
            text for text in (draft.content, draft.text_representation) if isinstance(text, str)
        ]
        limit = self._max_length
        for text in texts:
            if len(text) > limit:
                return Reject(f"a text has at most {limit} characters, this one {len(text)}")
        words = self._words
        if words is None or not any(map(words.search, texts)):
            return PASS
        if self.config.on_word == "reject":
            return Reject("the text contains a word that is not allowed here")
        content, shown = draft.content, draft.text_representation
        return Replace(
            replace(
                draft,
                content=words.sub(_stars, content) if isinstance(content, str) else content,
                text_representation=words.sub(_stars, shown) if shown is not None else None,
            )
        )


def _stars(match: re.Match[str]) -> str:
    return "*" * len(match[0])
