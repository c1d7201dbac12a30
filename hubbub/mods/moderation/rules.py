"""Rules: the messages to which each applies, and its violations in them."""

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
    compile_pattern,
    find_spans,
    folded,
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
"""Names for all threads of a kind."""


class RateConfig(Section):
    messages: Annotated[int, Field(ge=1, le=10_000)]
    """Maximum number of messages per participant…"""
    per: Span
    """…in any period of this many seconds."""


class LinksConfig(Section):
    allow: tuple[Domain, ...] | None = None
    """Allow only links to these domains and their subdomains. An empty list allows none."""
    deny: tuple[Domain, ...] = ()
    """Forbid links to these domains and their subdomains."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.allow is None) == (not self.deny):
            raise wrong("expected either allow or deny, with a list of domains")
        return self


class RuleConfig(Section):
    """One rule: exactly one of `regex`, `words`, `max_length`, `links` and `rate`."""

    name: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """Name of the rule in messages to senders. Default: its number."""
    regex: Pattern | None = None
    """A regular expression. A match violates the rule. It is case-sensitive unless the pattern
    starts with (?i)."""
    words: Annotated[tuple[Word, ...], Field(min_length=1)] | None = None
    """Forbidden whole words, in any case, also if disguised by similar letters."""
    max_length: Length | None = None
    """Maximum number of characters of a message."""
    links: LinksConfig | None = None
    """Allowed or forbidden domains of links."""
    rate: RateConfig | None = None
    """Maximum rate of messages per participant."""
    action: Literal["reject", "mask"] = "reject"
    """mask: violations are replaced, and the message passes."""
    replacement: Annotated[str, Field(max_length=200)] | None = None
    """With `mask`: the replacement. Default: asterisks, or for links [link removed]."""
    reason: Annotated[str, Field(max_length=500)] | None = None
    """With `reject`: the message to the sender. Default: a description of the rule."""
    threads: tuple[str, ...] = ()
    """Apply only to messages in these threads and their reply threads: ids such as
    channel_general, or `direct`, `channel`, `broadcast` for all of a kind. Default: all."""
    senders: tuple[Literal["agent", "human", "service"], ...] = ()
    """Apply only to messages of these kinds of participants. Default: all."""
    exempt: tuple[Id, ...] = ()
    """Participants to whose messages the rule does not apply."""
    exempt_owners: bool = False
    """Whether messages of owners are exempt."""

    @field_validator("threads")
    @classmethod
    def _known_threads(cls, threads: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(each if each in KINDS else named_thread(each) for each in threads)

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        checks = ("regex", "words", "max_length", "links", "rate")
        given = [name for name in checks if getattr(self, name) is not None]
        if len(given) != 1:
            names = " and ".join(given) or "none"
            raise wrong(f"a rule has exactly one of {', '.join(checks)}; this one has {names}")
        if self.action == "mask" and given[0] in ("max_length", "rate"):
            raise wrong(f"{given[0]} cannot be masked; omit action, and the message is refused")
        if self.replacement is not None and self.action != "mask":
            raise wrong("replacement requires action: mask")
        if self.reason is not None and self.action != "reject":
            raise wrong("reason requires action: reject")
        return self


class ModerationConfig(ModConfig):
    on_failure: OnFailure = "reject"
    """What happens to a message that could not be checked, for example because it took too long: it
    is refused or passes."""
    most_judged: Length = 200_000
    """Maximum number of characters of a message that can be checked, including quotes and
    attachments. Longer messages are refused."""
    secrets: Literal["redact", "reject", "off"] = "redact"
    """What happens to keys, tokens and passwords in a message: each is replaced by
    `[redacted: kind]`, or the message is refused."""
    max_length: Length | None = None
    """Maximum number of characters of a message. Longer ones are rejected."""
    words: tuple[Word, ...] = ()
    """Forbidden whole words, in any case."""
    on_word: Literal["reject", "mask"] = "reject"
    """mask: the word is replaced by asterisks, and the message passes."""
    rules: tuple[RuleConfig, ...] = ()
    """Further rules, in the order in which they are applied."""
    regex_time: Span = 0.1
    """Maximum seconds for all regular expressions per message, and five times that for a message
    of more than 4000 characters, which delays no others. If they take longer, the message is
    refused, because it could not be checked."""


SWEEP = 1024
"""Number of participants from which idle ones are removed."""


class RateWindow:
    """A sliding window per participant: at most `most` messages in any period of `per` seconds."""

    def __init__(self, most: int, per: float):
        self.most, self.per = most, per
        self._times: dict[str, deque[float]] = {}
        self._sweep_at = SWEEP

    def __len__(self) -> int:
        return len(self._times)

    def wait(self, who: str, now: float) -> float:
        """Seconds until one more message is allowed, 0 if it is allowed now."""
        times = self._times.get(who)
        if times is None or len(times) < self.most:
            return 0.0
        # After the clock was set back, no participant must wait longer than the period.
        return min(self.per, max(0.0, times[0] + self.per - now))

    def count(self, who: str, now: float) -> None:
        """Count a message."""
        self._times.setdefault(who, deque(maxlen=self.most)).append(now)
        if len(self._times) > self._sweep_at:
            self._times = {w: s for w, s in self._times.items() if s[-1] + self.per > now}
            self._sweep_at = max(SWEEP, 2 * len(self._times))


T = TypeVar("T")


class Author(NamedTuple):
    """The author of a message's text."""

    id: str
    kind: SenderKind
    owns: Callable[[], bool]
    """Whether it is an owner of the network."""


class Inspection:
    """The check of one message: normalized forms of its texts, and the remaining time."""

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
        """The form, cached for all rules."""
        if (kind, text) not in self._forms:
            self._forms[kind, text] = make(of)
        return self._forms[kind, text]

    def find(self, pattern: regex.Pattern[str], text: str) -> Iterable[TextSpan]:
        """The matches. Raises `SearchTimeout` if the time for all expressions is used up."""
        if self._until is None:
            self._until = monotonic() + self.seconds
        return find_spans(pattern, text, self._until - monotonic())


class ModerationRule(ABC):
    """A rule. `message` is the error for the sender of a rejected message."""

    message: str

    def __init__(self, config: RuleConfig, name: str):
        self.name = config.name or name
        self._threads, self._senders = frozenset(config.threads), config.senders
        self._exempt, self._owners_exempt = frozenset(config.exempt), config.exempt_owners
        self._for_all = not (config.threads or config.senders or config.exempt)
        self._for_all = self._for_all and not config.exempt_owners

    def applies_to(self, draft: Draft, author: Author) -> bool:
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
    """Limits the length of messages."""

    def __init__(self, config: RuleConfig, name: str):
        super().__init__(config, name)
        assert config.max_length is not None
        self.most, self._reason = config.max_length, config.reason

    def reason(self, length: int) -> str:
        return self._reason or f"the text has {length} characters; the limit is {self.most}"


class RateRule(ModerationRule):
    """Limits the rate of messages per participant."""

    def __init__(self, config: RuleConfig, name: str):
        super().__init__(config, name)
        assert config.rate is not None
        self.most, self.per, self._reason = config.rate.messages, config.rate.per, config.reason

    def reason(self, wait: float) -> str:
        own = self._reason or f"at most {self.most} messages in {self.per:g} s"
        return f"{own}; try again in {wait:.1f} s"


class ContentRule(ModerationRule):
    """Forbids certain content."""

    def __init__(self, config: RuleConfig, name: str, message: str, replacement: str | None = None):
        super().__init__(config, name)
        self.masks = config.action == "mask"
        self.replacement = config.replacement if config.replacement is not None else replacement
        """None means asterisks."""
        self.message = config.reason or message

    @abstractmethod
    def violations(self, text: str, inspection: Inspection) -> Sequence[TextSpan]:
        """The violations in the text. Raises `SearchTimeout`."""


class RegexRule(ContentRule):
    """Forbids matches of a regular expression, in the original and the visible text."""

    def __init__(self, config: RuleConfig, name: str):
        assert config.regex is not None
        super().__init__(config, name, f"the text violates the rule {config.name or name!r}")
        self._pattern = compile_pattern(config.regex)

    def violations(self, text: str, inspection: Inspection) -> Sequence[TextSpan]:
        spans = list(inspection.find(self._pattern, text))
        form = inspection.plain(text)
        if form.text != text:
            spans += [form.span(*span) for span in inspection.find(self._pattern, form.text)]
        return spans


class WordsRule(ContentRule):
    """Forbids whole words."""

    def __init__(self, config: RuleConfig, name: str):
        assert config.words is not None
        super().__init__(config, name, "the text contains a word that is not allowed")
        self._pattern = words_pattern(config.words)

    def violations(self, text: str, inspection: Inspection) -> Sequence[TextSpan]:
        form = inspection.caseless(text)
        spans = [form.span(*match.span()) for match in self._pattern.finditer(form.text)]
        if not form.text.isascii() and (latin := inspection.folded(text)).text != form.text:
            spans += [latin.span(*match.span()) for match in self._pattern.finditer(latin.text)]
        return spans


class LinksRule(ContentRule):
    """Forbids links to certain domains."""

    def __init__(self, config: RuleConfig, name: str):
        assert config.links is not None
        message = "a link leads to a domain that is not allowed"
        super().__init__(config, name, message, "[link removed]")
        self._links = config.links

    def violations(self, text: str, inspection: Inspection) -> Sequence[TextSpan]:
        if "." not in text and ":" not in text and text.isascii():
            return ()
        form = inspection.caseless(text)
        return [span for span, host in links(form) if not _is_allowed(host, self._links)]


def _is_allowed(host: str, config: LinksConfig) -> bool:
    if config.allow is None:
        return not is_within(host, config.deny)
    return is_within(host, config.allow)


def words_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """A pattern for whole words in a caseless text, which prefers the longer of two."""
    small = {caseless(plain(word)).text for word in words}
    any_of = "|".join(re.escape(word) for word in sorted(small, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{any_of})(?!\w)")


def rule_of(config: RuleConfig, name: str) -> ModerationRule:
    """The rule for these settings."""
    if config.regex is not None:
        return RegexRule(config, name)
    if config.words is not None:
        return WordsRule(config, name)
    if config.links is not None:
        return LinksRule(config, name)
    return LengthRule(config, name) if config.max_length is not None else RateRule(config, name)
