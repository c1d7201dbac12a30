"""Rules: which messages each of them concerns, and what in them is against it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import NamedTuple, TypeVar

import regex

from hubbub.mods.moderation.folding import Form, Span, caseless, folded, plain
from hubbub.mods.moderation.links import is_within, links
from hubbub.mods.moderation.patterns import compiled, found
from hubbub.mods.moderation.settings import LinksConfig, RuleConfig
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Draft, SenderKind

__all__ = [
    "Author",
    "ContentRule",
    "LengthRule",
    "Look",
    "RateRule",
    "Rule",
    "rule_of",
    "words_pattern",
]


T = TypeVar("T")


class Author(NamedTuple):
    """Whose words a message has."""

    id: str
    kind: SenderKind
    owns: Callable[[], bool]
    """Whether it is an owner of the network."""


class Look:
    """One message that is being looked at: its texts in their forms, and the time that is left."""

    def __init__(self, seconds: float):
        self._until: float | None = None
        self.seconds = seconds
        self._forms: dict[tuple[str, str], Form] = {}

    def plain(self, text: str) -> Form:
        return self._form("plain", text, plain, text)

    def caseless(self, text: str) -> Form:
        return self._form("caseless", text, caseless, self.plain(text))

    def folded(self, text: str) -> Form:
        return self._form("folded", text, folded, self.caseless(text))

    def _form(self, kind: str, text: str, make: Callable[[T], Form], of: T) -> Form:
        """Made once for all rules."""
        if (kind, text) not in self._forms:
            self._forms[kind, text] = make(of)
        return self._forms[kind, text]

    def found(self, pattern: regex.Pattern[str], text: str) -> Iterable[Span]:
        """Raises `Slow` when the time of all regular expressions is over."""
        if self._until is None:
            self._until = monotonic() + self.seconds
        return found(pattern, text, self._until - monotonic())


class Rule(ABC):
    """One rule. `told` is what the sender of a rejected message reads."""

    told: str

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


class LengthRule(Rule):
    """So many characters and no more."""

    def __init__(self, config: RuleConfig, name: str):
        super().__init__(config, name)
        assert config.max_length is not None
        self.most, self._reason = config.max_length, config.reason

    def reason(self, length: int) -> str:
        return self._reason or f"a text has at most {self.most} characters, this one {length}"


class RateRule(Rule):
    """So many messages of one participant in any span of so many seconds."""

    def __init__(self, config: RuleConfig, name: str):
        super().__init__(config, name)
        assert config.rate is not None
        self.most, self.per, self._reason = config.rate.messages, config.rate.per, config.reason

    def reason(self, wait: float) -> str:
        own = self._reason or f"at most {self.most} messages in {self.per:g} s"
        return f"{own}; there is room again in {wait:.1f} s"


class ContentRule(Rule):
    """Something in the texts is against it."""

    def __init__(self, config: RuleConfig, name: str, told: str, instead: str | None = None):
        super().__init__(config, name)
        self.masks = config.action == "mask"
        self.instead = config.replacement if config.replacement is not None else instead
        """None: asterisks."""
        self.told = config.reason or told

    @abstractmethod
    def places(self, text: str, look: Look) -> Sequence[Span]:
        """What in the text is against it. Raises `Slow`."""


class RegexRule(ContentRule):
    """What a regular expression matches, in the text as it is written and as it is seen."""

    def __init__(self, config: RuleConfig, name: str):
        assert config.regex is not None
        super().__init__(config, name, f"the text is against the rule {config.name or name!r}")
        self._pattern = compiled(config.regex)

    def places(self, text: str, look: Look) -> Sequence[Span]:
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

    def places(self, text: str, look: Look) -> Sequence[Span]:
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

    def places(self, text: str, look: Look) -> Sequence[Span]:
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


def rule_of(config: RuleConfig, name: str) -> Rule:
    """The rule that the settings describe."""
    if config.regex is not None:
        return RegexRule(config, name)
    if config.words is not None:
        return WordsRule(config, name)
    if config.links is not None:
        return LinksRule(config, name)
    return LengthRule(config, name) if config.max_length is not None else RateRule(config, name)
