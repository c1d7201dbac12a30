"""Rules: which messages each of them concerns, and what in them is against it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Annotated, Literal, NamedTuple, Self, TypeVar

import regex
from pydantic import Field, field_validator, model_validator

from hubbub.config.units import Id, Section, Span, wrong
from hubbub.mods.api import ModConfig, OnFailure
from hubbub.mods.fields import named_thread
from hubbub.mods.moderation.text import (
    Domain,
    NormalizedText,
    Pattern,
    TextSpan,
    caseless,
    compiled,
    folded,
    found,
    is_within,
    links,
    plain,
)
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Draft, SenderKind

__all__ = [
    "Author",
    "ContentRule",
    "Inspection",
    "LengthRule",
    "LinksConfig",
    "ModerationConfig",
    "ModerationRule",
    "RateRule",
    "RateWindow",
    "RuleConfig",
    "rule_of",
]

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
        return tuple(each if each in KINDS else named_thread(each) for each in threads)

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


SWEEP = 1024
"""So many participants are kept in mind before those who are silent are forgotten."""


class RateWindow:
    """A sliding window: at most `most` in any span of `per` seconds, for each participant."""

    def __init__(self, most: int, per: float):
        self.most, self.per = most, per
        self._spoken: dict[str, deque[float]] = {}
        self._sweep_at = SWEEP

    def __len__(self) -> int:
        return len(self._spoken)

    def wait(self, who: str, now: float) -> float:
        """Seconds until there is room for one more; 0: there is."""
        spoken = self._spoken.get(who)
        if spoken is None or len(spoken) < self.most:
            return 0.0
        # A clock that was set back must not silence anybody for longer than the span.
        return min(self.per, max(0.0, spoken[0] + self.per - now))

    def count(self, who: str, now: float) -> None:
        """One more."""
        self._spoken.setdefault(who, deque(maxlen=self.most)).append(now)
        if len(self._spoken) > self._sweep_at:
            self._spoken = {w: s for w, s in self._spoken.items() if s[-1] + self.per > now}
            self._sweep_at = max(SWEEP, 2 * len(self._spoken))


T = TypeVar("T")


class Author(NamedTuple):
    """Whose words a message has."""

    id: str
    kind: SenderKind
    owns: Callable[[], bool]
    """Whether it is an owner of the network."""


class Inspection:
    """One message that is being looked at: its texts in their forms, and the time that is left."""

    def __init__(self, seconds: float):
        self._until: float | None = None
        self.seconds = seconds
        self._forms: dict[tuple[str, str], NormalizedText] = {}

    def plain(self, text: str) -> NormalizedText:
        return self._form("plain", text, plain, text)

    def caseless(self, text: str) -> NormalizedText:
        return self._form("caseless", text, caseless, self.plain(text))

    def folded(self, text: str) -> NormalizedText:
        return self._form("folded", text, folded, self.caseless(text))

    def _form(
        self, kind: str, text: str, make: Callable[[T], NormalizedText], of: T
    ) -> NormalizedText:
        """Made once for all rules."""
        if (kind, text) not in self._forms:
            self._forms[kind, text] = make(of)
        return self._forms[kind, text]

    def found(self, pattern: regex.Pattern[str], text: str) -> Iterable[TextSpan]:
        """Raises `SearchTimeout` when the time of all regular expressions is over."""
        if self._until is None:
            self._until = monotonic() + self.seconds
        return found(pattern, text, self._until - monotonic())


class ModerationRule(ABC):
    """One rule. `message` is what the sender of a rejected message reads."""

    message: str

    def __init__(self, config: RuleConfig, name: str):
        self.name = config.name or name
        self._threads, self._senders = frozenset(config.threads), config.senders
        self._exempt, self._owners_exempt = frozenset(config.exempt), config.exempt_owners
        self._for_all = not (config.threads or config.senders or config.exempt)
        self._for_all = self._for_all and not config.exempt_owners

    def concerns(self, draft: Draft, author: Author) -> bool:
        if self._for_all:
            return True
        if self._senders and author.kind not in self._senders:
            return False
        if self._threads and self._threads.isdisjoint(
            (draft.type, thread_ids.root(draft.thread_id))
        ):
            return False
        exempt = author.id in self._exempt or (self._owners_exempt and author.owns())
        return not exempt


class LengthRule(ModerationRule):
    """So many characters and no more."""

    def __init__(self, config: RuleConfig, name: str):
        super().__init__(config, name)
        assert config.max_length is not None
        self.most, self._reason = config.max_length, config.reason

    def reason(self, length: int) -> str:
        return self._reason or f"a text has at most {self.most} characters, this one {length}"


class RateRule(ModerationRule):
    """So many messages of one participant in any span of so many seconds."""

    def __init__(self, config: RuleConfig, name: str):
        super().__init__(config, name)
        assert config.rate is not None
        self.most, self.per, self._reason = config.rate.messages, config.rate.per, config.reason

    def reason(self, wait: float) -> str:
        own = self._reason or f"at most {self.most} messages in {self.per:g} s"
        return f"{own}; there is room again in {wait:.1f} s"


class ContentRule(ModerationRule):
    """Something in the texts is against it."""

    def __init__(self, config: RuleConfig, name: str, told: str, instead: str | None = None):
        super().__init__(config, name)
        self.masks = config.action == "mask"
        self.instead = config.replacement if config.replacement is not None else instead
        """None: asterisks."""
        self.message = config.reason or told

    @abstractmethod
    def places(self, text: str, look: Inspection) -> Sequence[TextSpan]:
        """What in the text is against it. Raises `SearchTimeout`."""


class RegexRule(ContentRule):
    """What a regular expression matches, in the text as it is written and as it is seen."""

    def __init__(self, config: RuleConfig, name: str):
        assert config.regex is not None
        super().__init__(config, name, f"the text is against the rule {config.name or name!r}")
        self._pattern = compiled(config.regex)

    def places(self, text: str, look: Inspection) -> Sequence[TextSpan]:
        spans = list(look.found(self._pattern, text))
        seen = look.plain(text)
        if seen.text != text:
            spans += [seen.span(*span) for span in look.found(self._pattern, seen.text)]
        return spans


class WordsRule(ContentRule):
    """Whole words."""

    def __init__(self, config: RuleConfig, name: str):
        assert config.words is not None
        super().__init__(config, name, "the text contains a word that is not allowed here")
        self._pattern = words_pattern(config.words)

    def places(self, text: str, look: Inspection) -> Sequence[TextSpan]:
        form = look.caseless(text)
        spans = [form.span(*match.span()) for match in self._pattern.finditer(form.text)]
        if not form.text.isascii() and (latin := look.folded(text)).text != form.text:
            spans += [latin.span(*match.span()) for match in self._pattern.finditer(latin.text)]
        return spans


class LinksRule(ContentRule):
    """Links that lead where they may not."""

    def __init__(self, config: RuleConfig, name: str):
        assert config.links is not None
        told = "a link leads to a domain that is not allowed here"
        super().__init__(config, name, told, "[link removed]")
        self._links = config.links

    def places(self, text: str, look: Inspection) -> Sequence[TextSpan]:
        if "." not in text and ":" not in text and text.isascii():
            return ()
        form = look.caseless(text)
        return [span for span, host in links(form) if not _fine(host, self._links)]


def _fine(host: str, config: LinksConfig) -> bool:
    if config.allow is None:
        return not is_within(host, config.deny)
    return is_within(host, config.allow)


def words_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Finds whole words in a text without case; of two that begin alike, the longer."""
    small = {caseless(plain(word)).text for word in words}
    any_of = "|".join(re.escape(word) for word in sorted(small, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{any_of})(?!\w)")


def rule_of(config: RuleConfig, name: str) -> ModerationRule:
    """The rule that the settings describe."""
    if config.regex is not None:
        return RegexRule(config, name)
    if config.words is not None:
        return WordsRule(config, name)
    if config.links is not None:
        return LinksRule(config, name)
    return LengthRule(config, name) if config.max_length is not None else RateRule(config, name)
