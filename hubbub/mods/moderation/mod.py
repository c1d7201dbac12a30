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
from collections.abc import Sequence
from dataclasses import replace

from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Replace, Verdict
from hubbub.mods.moderation.folding import replaced
from hubbub.mods.moderation.patterns import Slow
from hubbub.mods.moderation.rates import Window
from hubbub.mods.moderation.rules import (
    Author,
    ContentRule,
    LengthRule,
    Look,
    RateRule,
    Rule,
    rule_of,
)
from hubbub.mods.moderation.secrets import Found, may_have_secret, named_secret, secrets_in
from hubbub.mods.moderation.settings import ModerationConfig, RuleConfig
from hubbub.mods.moderation.texts import Text, rewritten, said, text_alone, texts
from hubbub.protocol.messages import Draft

__all__ = ["LONG", "Moderation"]

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
        self._windows: dict[str, Window] = {}
        self._counts = threading.Lock()
        self.reconfigure(config)

    def reconfigure(self, config: ModConfig) -> None:
        super().reconfigure(config)
        self._rules = _rules(self.config)
        rates = [rule for rule in self._rules if isinstance(rule, RateRule)]
        self._rates = [(rule, self._window(rule)) for rule in rates]
        self._windows = {rule.name: window for rule, window in self._rates}
        self._harmless = self._harmless_length()

    def _is_harmless(self, text: str) -> bool:
        """Whether a text on its own surely breaks no rule and has no secret."""
        if len(text) > self._harmless:
            return False
        return self.config.secrets == "off" or not may_have_secret(text)

    def _harmless_length(self) -> int:
        """Characters up to which a text on its own breaks no rule, whoever says it; secrets are
        another matter."""
        lengths = [rule.most for rule in self._rules if isinstance(rule, LengthRule)]
        if len(lengths) < len(self._rules):
            return 0
        return min([self.config.most_judged, *lengths])

    def _window(self, rule: RateRule) -> Window:
        """The one that counts already, if the rule is the same as before."""
        old = self._windows.get(rule.name)
        same = old is not None and (old.most, old.per) == (rule.most, rule.per)
        return old if old is not None and same else Window(rule.most, rule.per)

    # Judging ----------------------------------------------------------------------------------

    def takes_long(self, draft: Draft) -> bool:
        return _length(draft) > LONG

    def on_message(self, draft: Draft) -> Verdict:
        alone = text_alone(draft)
        if alone is not None and self._is_harmless(alone):
            return PASS  # as nearly all messages
        if _length(draft) > self.config.most_judged:
            most = self.config.most_judged
            return Reject(f"a message with its attachments has at most {most} characters")
        made = draft
        if self.config.secrets != "off":
            made, kinds = _without_secrets(draft)
            if kinds and self.config.secrets == "reject":
                return Reject(f"the message contains a secret ({', '.join(kinds)}): leave it out")
            if kinds:
                made = replace(made, notes=(*made.notes, _note(kinds)))
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
        look: Look | None = None
        for rule in self._rules:
            if isinstance(rule, RateRule) or not rule.concerns(draft, author):
                continue
            if isinstance(rule, LengthRule):
                if reason := _too_long(rule, draft):
                    return Reject(reason)
                continue
            assert isinstance(rule, ContentRule)
            look = look or Look(self._regex_time(draft))
            try:
                after = _held_to(rule, draft, look)
            except Slow:
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
        if deletes or draft.sent_at is not None or draft.timer_of is not None:
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
    alone = text_alone(draft)
    return sum(len(each.text) for each in texts(draft)) if alone is None else len(alone)


def _rules(config: ModerationConfig) -> Sequence[Rule]:
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
    whole = sum(len(each.text) for each in said(draft))
    length = max(whole - len(shown), len(shown)) if shown is not None else whole
    return rule.reason(length) if length > rule.most else None


def _held_to(rule: ContentRule, draft: Draft, look: Look) -> Draft | Reject:
    """Raises `Slow`."""
    if not any(rule.places(each.text, look) for each in texts(draft)):
        return draft
    if not rule.masks:
        return Reject(rule.told)
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


def _secrets(each: Text) -> list[Found]:
    found = secrets_in(each.text)
    if not found and each.field and named_secret(each.field, each.text):
        return [Found("secret", (0, len(each.text)))]
    return found


def _note(kinds: Sequence[str]) -> str:
    return (
        f"moderation: the message was kept without what looks like a secret ({', '.join(kinds)}); "
        "do not send it again"
    )
