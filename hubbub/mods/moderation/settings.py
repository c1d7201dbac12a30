"""The settings of the mod `moderation`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from hubbub.config.units import Id, Section, Span, wrong
from hubbub.mods.api import ModConfig, OnFailure
from hubbub.mods.moderation.links import Domain
from hubbub.mods.moderation.patterns import Pattern
from hubbub.protocol import thread_ids

__all__ = ["LinksConfig", "ModerationConfig", "RateConfig", "RuleConfig"]

Word = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
Length = Annotated[int, Field(ge=1)]
KINDS = ("direct", "channel", "broadcast", "mod")
"""Words for all threads of a kind."""


class RateConfig(Section):
    messages: Annotated[int, Field(ge=1, le=10_000)]
    """How many one participant may send…"""
    per: Span
    """…in any span of so many seconds."""


class LinksConfig(Section):
    allow: tuple[Domain, ...] | None = None
    """Only links to these domains, and to parts of them, are fine; with an empty list none is."""
    deny: tuple[Domain, ...] = ()
    """Links to these domains, and to parts of them, are not."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.allow is None) == (not self.deny):
            raise wrong("expected either allow or deny, with a list of domains")
        return self


class RuleConfig(Section):
    """One rule: exactly one of `regex`, `words`, `max_length`, `links` and `rate`."""

    name: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """What it is called for those whose message it touches; left out: its number."""
    regex: Pattern | None = None
    """A regular expression; what it matches is against the rule. Case counts, unless the pattern
    begins with (?i)."""
    words: Annotated[tuple[Word, ...], Field(min_length=1)] | None = None
    """Whole words, in any case and disguise."""
    max_length: Length | None = None
    """Characters of all that is said."""
    links: LinksConfig | None = None
    """Where links may lead."""
    rate: RateConfig | None = None
    """How often one participant may speak."""
    action: Literal["reject", "mask"] = "reject"
    """mask: what is against the rule is replaced, and the message goes on."""
    replacement: Annotated[str, Field(max_length=200)] | None = None
    """With `mask`: what is put in its place; left out: asterisks, or for links [link removed]."""
    reason: Annotated[str, Field(max_length=500)] | None = None
    """With `reject`: what the sender is told; left out: what the rule says."""
    threads: tuple[str, ...] = ()
    """Only messages in these threads and in their reply threads: ids such as channel_general, or
    `direct`, `channel`, `broadcast` for all of a kind. Empty: all."""
    senders: tuple[Literal["agent", "human", "service"], ...] = ()
    """Only messages of participants of these kinds. Empty: all."""
    exempt: tuple[Id, ...] = ()
    """Participants whose messages it does not concern."""
    exempt_owners: bool = False
    """Whether it does not concern messages of owners."""

    @field_validator("threads")
    @classmethod
    def _known_threads(cls, threads: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_thread, threads))

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        checks = ("regex", "words", "max_length", "links", "rate")
        given = [name for name in checks if getattr(self, name) is not None]
        if len(given) != 1:
            told = " and ".join(given) or "none"
            raise wrong(f"a rule has exactly one of {', '.join(checks)}; this one has {told}")
        if self.action == "mask" and given[0] in ("max_length", "rate"):
            raise wrong(
                f"{given[0]} cannot be masked: leave action out, and the message is refused"
            )
        if self.replacement is not None and self.action != "mask":
            raise wrong("replacement is for action: mask")
        if self.reason is not None and self.action != "reject":
            raise wrong("reason is for action: reject")
        return self


def _thread(name: str) -> str:
    """The canonical id, or a kind of threads."""
    found = name if name in KINDS else thread_ids.canonical(name, "")
    if found is None:
        raise wrong(f"{name!r} is no thread: write channel_name, broadcast, direct or mod_name")
    return found


class ModerationConfig(ModConfig):
    on_failure: OnFailure = "reject"
    """What becomes of a message that could not be judged, because that took too long for example:
    it is refused, or it passes."""
    most_judged: Length = 200_000
    """Characters of a message that are looked at, those of quotes and attachments included; one
    with more is refused."""
    secrets: Literal["redact", "reject", "off"] = "redact"
    """What becomes of keys, tokens and passwords in a message: each is replaced by
    `[redacted: kind]`, or the message is refused."""
    max_length: Length | None = None
    """Characters of a text; longer ones are rejected."""
    words: tuple[Word, ...] = ()
    """Whole words, in any case."""
    on_word: Literal["reject", "mask"] = "reject"
    """mask: the word is replaced by asterisks and the message goes on."""
    rules: tuple[RuleConfig, ...] = ()
    """More rules, in the order in which they are asked."""
    regex_time: Span = 0.1
    """Seconds that all regular expressions together may take for one message, five times as long
    for one of more than 4000 characters, which nobody else waits for. One that takes longer is
    refused: nobody knows whether it is fine."""
