"""The mod `moderation`: rules for messages, and removal of secrets before they enter the log.

mods:
  - moderation:
      max_length: 4000
      rules:
        - {links: {allow: [example.org]}, action: mask}
        - {rate: {messages: 10, per: 1m}, senders: [agent]}
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.mods.moderation.rules import (
    Author,
    ContentRule,
    Inspection,
    LengthRule,
    ModerationConfig,
    ModerationRule,
    RateRule,
    RateWindow,
    RuleConfig,
    rule_of,
)
from hubbub.mods.moderation.secrets import SecretMatch, may_have_secret, named_secret, secrets_in
from hubbub.mods.moderation.text import SearchTimeout, replace_spans
from hubbub.protocol.messages import Attachment, Draft, TimerMark, TranscriptMark

__all__ = ["LONG", "Moderation"]


class Text(NamedTuple):
    """A text in a draft."""

    text: str
    field: str = ""
    """In JSON content: the name of its field."""


Change = Callable[[Text], str]


def only_text(draft: Draft) -> str | None:
    """The only text of the draft, as in most messages. None if there are others."""
    only = draft.text_representation is None and draft.quote is None and not draft.attachments
    return draft.content if only and isinstance(draft.content, str) else None


def texts(draft: Draft) -> Sequence[Text]:
    """All texts that readers get: strings and field names of the content, the text representation,
    the quote, and names, URIs and excerpts of attachments."""
    if (text := only_text(draft)) is not None:
        return [Text(text)]
    collected: list[Text] = []

    def collect(each: Text) -> str:
        collected.append(each)
        return each.text

    rewrite(draft, collect)
    return collected


def rewrite(draft: Draft, change: Change) -> Draft:
    """The draft with each text changed, or the same object if none changed."""
    shown, quote = draft.text_representation, draft.quote
    attachments = tuple(_rewrite_attachment(each, change) for each in draft.attachments)
    quoted = quote and quote.model_copy(update={"text": change(Text(quote.text))})
    changed = draft.replace(
        content=_rewrite_value(draft.content, change),
        text_representation=None if shown is None else change(Text(shown)),
        quote=quoted,
        attachments=attachments,
    )
    return draft if changed == draft else changed


def _rewrite_attachment(attachment: Attachment, change: Change) -> Attachment:
    names = ("name", "media_type", "uri")
    changed = {name: change(Text(getattr(attachment, name))) for name in names}
    excerpt = attachment.excerpt
    return attachment.model_copy(
        update={**changed, "excerpt": None if excerpt is None else change(Text(excerpt))}
    )


def _rewrite_value(value: JsonValue, change: Change, field: str = "") -> JsonValue:
    if isinstance(value, str):
        return change(Text(value, field))
    if isinstance(value, list):
        return [_rewrite_value(item, change, field) for item in value]
    if not isinstance(value, dict):
        return value
    changed: dict[str, JsonValue] = {}
    for key, item in value.items():
        changed[_unused_name(change(Text(key)), changed)] = _rewrite_value(item, change, key)
    return changed


def _unused_name(name: str, taken: dict[str, JsonValue]) -> str:
    """The name, with a number if it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free


LONG = 4000
"""Length in characters above which a message is checked in a thread, despite the overhead."""
THREAD_FACTOR = 5
"""Factor for the time limit of regular expressions in a thread, which has to wait for the GIL."""


class Moderation(Mod):
    """Rules for messages (length, words, patterns, links and rate), and removal of keys, tokens and
    passwords before they enter the log.

    Rules apply to all participants except the hub. Reminders count as messages of their owners.
    Secrets are removed from all messages, including edits.
    """

    name = "moderation"
    Config = ModerationConfig
    config: ModerationConfig

    def __init__(self, config: ModerationConfig):
        super().__init__(config)
        self._windows: dict[str, RateWindow] = {}
        self._counts = threading.Lock()
        self.reconfigure(config)

    def reconfigure(self, config: ModConfig) -> None:
        super().reconfigure(config)
        self._rules = _rules(self.config)
        rates = [rule for rule in self._rules if isinstance(rule, RateRule)]
        self._rates = [(rule, self._window(rule)) for rule in rates]
        self._windows = {rule.name: window for rule, window in self._rates}
        self._safe_length = self._max_safe_length()

    def _max_safe_length(self) -> int:
        """Length up to which a message with only text violates no rule. It can have secrets."""
        lengths = [rule.most for rule in self._rules if isinstance(rule, LengthRule)]
        if len(lengths) < len(self._rules):
            return 0
        return min([self.config.most_judged, *lengths])

    def _window(self, rule: RateRule) -> RateWindow:
        """The existing window of the rule if it did not change, else a new one."""
        old = self._windows.get(rule.name)
        same = old is not None and (old.most, old.per) == (rule.most, rule.per)
        return old if old is not None and same else RateWindow(rule.most, rule.per)

    # Checks -----------------------------------------------------------------------------------

    short = LONG

    def takes_long(self, draft: Draft) -> bool:
        return _length(draft) > LONG

    def watches(self, draft: Draft) -> bool:
        """False for a text that cannot violate a rule or have a secret, like most messages."""
        text = only_text(draft)
        if text is None or len(text) > self._safe_length:
            return True
        return self.config.secrets != "off" and may_have_secret(text)

    def on_message(self, draft: Draft) -> Verdict:
        if _length(draft) > self.config.most_judged:
            most = self.config.most_judged
            return Reject(f"the message with its attachments has more than {most} characters")
        checked = draft
        if self.config.secrets != "off":
            checked, kinds = _without_secrets(draft)
            if kinds and self.config.secrets == "reject":
                return Reject(f"the message contains a secret ({', '.join(kinds)}); remove it")
            if kinds:
                checked = checked.replace(notes=(*checked.notes, _note(kinds)))
        if self._rules and (draft.sender_kind != "system" or draft.timer_of is not None):
            result = self._apply_rules(checked, self._author(draft))
            if isinstance(result, Reject):
                return result
            checked = result
        return PASS if checked is draft else Replace(checked)

    def _author(self, draft: Draft) -> Author:
        """The author; of a timer's message, the participant who set the timer."""
        owner = draft.timer_of
        if owner is None:
            who = draft.author
            return Author(who, draft.sender_kind, lambda: self.host.owns(who))
        kind = self.host.kind_of(owner) or "service"
        return Author(owner, kind, lambda: self.host.owns(owner))

    def _apply_rules(self, draft: Draft, author: Author) -> Draft | Reject:
        inspection: Inspection | None = None
        for rule in self._rules:
            if isinstance(rule, RateRule) or not rule.applies_to(draft, author):
                continue
            if isinstance(rule, LengthRule):
                if reason := _too_long(rule, draft):
                    return Reject(reason)
                continue
            assert isinstance(rule, ContentRule)
            inspection = inspection or Inspection(self._regex_time(draft))
            try:
                result = _apply_rule(rule, draft, inspection)
            except SearchTimeout:
                return Reject(
                    f"the rule {rule.name!r} could not be checked in {inspection.seconds:g} s; "
                    "ask an owner to simplify its pattern"
                )
            if isinstance(result, Reject):
                return result
            draft = result
        return self._check_rate(draft, author) if self._rates else draft

    def _regex_time(self, draft: Draft) -> float:
        return self.config.regex_time * (THREAD_FACTOR if self.takes_long(draft) else 1)

    def _check_rate(self, draft: Draft, author: Author) -> Draft | Reject:
        """Counts only accepted messages. Deletions are always allowed, and messages of transcripts
        and timers are not counted."""
        deletes = draft.amends is not None and draft.amends.kind == "deleted"
        if deletes or isinstance(draft.purpose, TranscriptMark | TimerMark):
            return draft
        who, now = author.id, self.host.now()
        counting = [(r, w) for r, w in self._rates if r.applies_to(draft, author)]
        with self._counts:
            for rule, window in counting:
                wait = window.wait(who, now)
                if wait > 0:
                    return Reject(rule.reason(wait))
            for _, window in counting:
                window.count(who, now)
        return draft


def _length(draft: Draft) -> int:
    """The total length of its texts in characters."""
    return sum(len(each.text) for each in texts(draft))


def _rules(config: ModerationConfig) -> Sequence[ModerationRule]:
    """All rules, starting with those from `max_length` and `words`."""
    short: list[RuleConfig] = []
    if config.max_length is not None:
        short.append(RuleConfig(name="max_length", max_length=config.max_length))
    if config.words:
        short.append(RuleConfig(name="words", words=config.words, action=config.on_word))
    listed = [rule_of(rule, f"rule {n}") for n, rule in enumerate(config.rules, 1)]
    return [*(rule_of(rule, "") for rule in short), *listed]


def _too_long(rule: LengthRule, draft: Draft) -> str | None:
    """The error if the content or its text representation is too long."""
    if _length(draft) <= rule.most:
        return None
    shown = draft.text_representation
    whole = _length(draft.replace(quote=None, attachments=()))
    length = max(whole - len(shown), len(shown)) if shown is not None else whole
    return rule.reason(length) if length > rule.most else None


def _apply_rule(rule: ContentRule, draft: Draft, inspection: Inspection) -> Draft | Reject:
    """The verdict of one rule. Raises `SearchTimeout`."""
    if not any(rule.violations(each.text, inspection) for each in texts(draft)):
        return draft
    if not rule.masks:
        return Reject(rule.message)
    return rewrite(
        draft,
        lambda each: replace_spans(
            each.text, rule.violations(each.text, inspection), rule.replacement
        ),
    )


# Secrets --------------------------------------------------------------------------------------


def _without_secrets(draft: Draft) -> tuple[Draft, list[str]]:
    """The draft with each secret replaced by its kind, and the kinds."""
    if not any(map(_secrets, texts(draft))):
        return draft, []
    kinds: dict[str, None] = {}

    def redact(each: Text) -> str:
        text = each.text
        for match in reversed(_secrets(each)):
            kinds[match.kind] = None
            text = replace_spans(text, [match.span], f"[redacted: {match.kind}]")
        return text

    return rewrite(draft, redact), list(kinds)


def _secrets(each: Text) -> list[SecretMatch]:
    matches = secrets_in(each.text)
    if not matches and each.field and named_secret(each.field, each.text):
        return [SecretMatch("secret", (0, len(each.text)))]
    return matches


def _note(kinds: Sequence[str]) -> str:
    return (
        f"moderation: text that looks like a secret was removed ({', '.join(kinds)}); "
        "do not send it again"
    )
