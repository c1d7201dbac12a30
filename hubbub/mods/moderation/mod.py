"""The mod `moderation`: rules for what is said, and secrets that never enter the log.

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
from hubbub.mods.moderation.text import SearchTimeout, replaced
from hubbub.protocol.messages import Attachment, Draft, TimerMark, TranscriptMark

__all__ = ["LONG", "Moderation"]


class Text(NamedTuple):
    """A text of a draft."""

    text: str
    field: str = ""
    """In JSON content: the name of the field whose value it is."""


Change = Callable[[Text], str]


def text_alone(draft: Draft) -> str | None:
    """The text that is all there is to read in it, as in most messages; None if there is more."""
    alone = draft.text_representation is None and draft.quote is None and not draft.attachments
    return draft.content if alone and isinstance(draft.content, str) else None


def texts(draft: Draft) -> Sequence[Text]:
    """All texts that readers get from it: strings of the content with the names of fields, what is
    shown in its place, what is quoted, and what attachments are called, where they are and how
    their texts begin."""
    if (alone := text_alone(draft)) is not None:
        return [Text(alone)]
    found: list[Text] = []

    def seen(each: Text) -> str:
        found.append(each)
        return each.text

    rewritten(draft, seen)
    return found


def rewritten(draft: Draft, change: Change) -> Draft:
    """The draft with each of its texts changed; the same object if none is."""
    shown, quote = draft.text_representation, draft.quote
    attachments = tuple(_renamed(each, change) for each in draft.attachments)
    quoted = quote and quote.model_copy(update={"text": change(Text(quote.text))})
    made = draft.replace(
        content=_rewritten(draft.content, change),
        text_representation=None if shown is None else change(Text(shown)),
        quote=quoted,
        attachments=attachments,
    )
    return draft if made == draft else made


def _renamed(attachment: Attachment, change: Change) -> Attachment:
    made = {name: change(Text(getattr(attachment, name))) for name in ("name", "media_type", "uri")}
    excerpt = attachment.excerpt
    return attachment.model_copy(
        update={**made, "excerpt": None if excerpt is None else change(Text(excerpt))}
    )


def _rewritten(value: JsonValue, change: Change, field: str = "") -> JsonValue:
    if isinstance(value, str):
        return change(Text(value, field))
    if isinstance(value, list):
        return [_rewritten(item, change, field) for item in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, JsonValue] = {}
    for key, item in value.items():
        made[_free(change(Text(key)), made)] = _rewritten(item, change, key)
    return made


def _free(name: str, taken: dict[str, JsonValue]) -> str:
    """The name; with a number if another field has become the same."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free


LONG = 4000
"""Characters from which on a message is judged in a thread: for fewer the way there is longer."""
PATIENCE = 5
"""Times the time of regular expressions that they have there, where they wait for their turns."""


class Moderation(Mod):
    """Rules for messages: length, words, patterns, links and rate; and keys, tokens and passwords
    are kept out of the log.

    Rules are for everybody but the hub itself, reminders included, which are their owners' words;
    secrets are looked for in all messages, edits included.
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
        self._harmless = self._harmless_length()

    def _harmless_length(self) -> int:
        """Characters up to which a text on its own breaks no rule, whoever says it; secrets are
        another matter."""
        lengths = [rule.most for rule in self._rules if isinstance(rule, LengthRule)]
        if len(lengths) < len(self._rules):
            return 0
        return min([self.config.most_judged, *lengths])

    def _window(self, rule: RateRule) -> RateWindow:
        """The one that counts already, if the rule is the same as before."""
        old = self._windows.get(rule.name)
        same = old is not None and (old.most, old.per) == (rule.most, rule.per)
        return old if old is not None and same else RateWindow(rule.most, rule.per)

    # Judging ----------------------------------------------------------------------------------

    short = LONG

    def takes_long(self, draft: Draft) -> bool:
        return _length(draft) > LONG

    def watches(self, draft: Draft) -> bool:
        """Not of a text that surely breaks no rule and has no secret, as nearly all."""
        text = text_alone(draft)
        if text is None or len(text) > self._harmless:
            return True
        return self.config.secrets != "off" and may_have_secret(text)

    def on_message(self, draft: Draft) -> Verdict:
        if _length(draft) > self.config.most_judged:
            most = self.config.most_judged
            return Reject(f"a message with its attachments has at most {most} characters")
        made = draft
        if self.config.secrets != "off":
            made, kinds = _without_secrets(draft)
            if kinds and self.config.secrets == "reject":
                return Reject(f"the message contains a secret ({', '.join(kinds)}): leave it out")
            if kinds:
                made = made.replace(notes=(*made.notes, _note(kinds)))
        if self._rules and (draft.sender_kind != "system" or draft.timer_of is not None):
            after = self._judged(made, self._author(draft))
            if isinstance(after, Reject):
                return after
            made = after
        return PASS if made is draft else Replace(made)

    def _author(self, draft: Draft) -> Author:
        """Who has spoken; of a timer's message, who has set it."""
        of = draft.timer_of
        if of is None:
            who = draft.said_by
            return Author(who, draft.sender_kind, lambda: self.host.owns(who))
        return Author(of, self.host.kind_of(of) or "service", lambda: self.host.owns(of))

    def _judged(self, draft: Draft, author: Author) -> Draft | Reject:
        look: Inspection | None = None
        for rule in self._rules:
            if isinstance(rule, RateRule) or not rule.concerns(draft, author):
                continue
            if isinstance(rule, LengthRule):
                if reason := _too_long(rule, draft):
                    return Reject(reason)
                continue
            assert isinstance(rule, ContentRule)
            look = look or Inspection(self._regex_time(draft))
            try:
                after = _held_to(rule, draft, look)
            except SearchTimeout:
                return Reject(
                    f"the rule {rule.name!r} could not be checked in {look.seconds:g} s; "
                    "an owner should make its pattern simpler"
                )
            if isinstance(after, Reject):
                return after
            draft = after
        return self._in_time(draft, author) if self._rates else draft

    def _regex_time(self, draft: Draft) -> float:
        return self.config.regex_time * (PATIENCE if self.takes_long(draft) else 1)

    def _in_time(self, draft: Draft, author: Author) -> Draft | Reject:
        """Only what is accepted counts. Taking back what one has said is always possible, and what
        a transcript or a timer says is said by nobody now."""
        deletes = draft.amends is not None and draft.amends.kind == "deleted"
        if deletes or isinstance(draft.purpose, TranscriptMark | TimerMark):
            return draft
        who, now = author.id, self.host.now()
        counting = [(r, w) for r, w in self._rates if r.concerns(draft, author)]
        with self._counts:
            for rule, window in counting:
                wait = window.wait(who, now)
                if wait > 0:
                    return Reject(rule.reason(wait))
            for _, window in counting:
                window.count(who, now)
        return draft


def _length(draft: Draft) -> int:
    """Characters of all its texts."""
    return sum(len(each.text) for each in texts(draft))


def _rules(config: ModerationConfig) -> Sequence[ModerationRule]:
    """Those of the short settings first."""
    short: list[RuleConfig] = []
    if config.max_length is not None:
        short.append(RuleConfig(name="max_length", max_length=config.max_length))
    if config.words:
        short.append(RuleConfig(name="words", words=config.words, action=config.on_word))
    listed = [rule_of(rule, f"rule {n}") for n, rule in enumerate(config.rules, 1)]
    return [*(rule_of(rule, "") for rule in short), *listed]


def _too_long(rule: LengthRule, draft: Draft) -> str | None:
    """Why the message is refused: its content is too long, or what is shown in its place."""
    if _length(draft) <= rule.most:
        return None
    shown = draft.text_representation
    whole = _length(draft.replace(quote=None, attachments=()))
    length = max(whole - len(shown), len(shown)) if shown is not None else whole
    return rule.reason(length) if length > rule.most else None


def _held_to(rule: ContentRule, draft: Draft, look: Inspection) -> Draft | Reject:
    """Raises `SearchTimeout`."""
    if not any(rule.places(each.text, look) for each in texts(draft)):
        return draft
    if not rule.masks:
        return Reject(rule.message)
    return rewritten(
        draft, lambda each: replaced(each.text, rule.places(each.text, look), rule.instead)
    )


# Secrets --------------------------------------------------------------------------------------


def _without_secrets(draft: Draft) -> tuple[Draft, list[str]]:
    """The draft with each secret replaced by its kind, and the kinds."""
    if not any(map(_secrets, texts(draft))):
        return draft, []
    kinds: dict[str, None] = {}

    def redacted(each: Text) -> str:
        text = each.text
        for found in reversed(_secrets(each)):
            kinds[found.kind] = None
            text = replaced(text, [found.span], f"[redacted: {found.kind}]")
        return text

    return rewritten(draft, redacted), list(kinds)


def _secrets(each: Text) -> list[SecretMatch]:
    found = secrets_in(each.text)
    if not found and each.field and named_secret(each.field, each.text):
        return [SecretMatch("secret", (0, len(each.text)))]
    return found


def _note(kinds: Sequence[str]) -> str:
    return (
        f"moderation: the message was kept without what looks like a secret ({', '.join(kinds)}); "
        "do not send it again"
    )
