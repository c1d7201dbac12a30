"""A linter for prompts. Pure.

    for finding in lint(subject):
        print(finding)

Levels: an `error` is a contradiction or a gap, a `warning` is advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hubbub.agents.prompt.lint_subject import LintSubject, PromptSentence, PromptText, SourceLine
from hubbub.agents.prompt.lint_templates import untrusted_text
from hubbub.agents.prompt.lint_tools import (
    contradictions,
    disabled_tools,
    forbidden_tools,
    unknown_tools,
)

__all__ = ["MOST_RULES", "RULES", "Finding", "LintRule", "lint"]

Level = Literal["error", "warning"]
Check = Callable[[LintSubject], Iterator[tuple[SourceLine, str]]]

MOST_RULES = 7
"""Number of hard rules that a model can keep in mind."""
LONG = 2500
"""Characters from which on the middle of a prompt gets less attention."""
EDGE = 0.2
"""Share of a long prompt at its beginning, and at its end, that gets full attention."""

_HARD = re.compile(r"\b(?:must|never|always)\b", re.I)
_WAY_OUT = re.compile(
    r"\bfinish\b|\bdecline\b|\bask_human\b|\brefuse\b|\bstay\s+silent\b|\bsay\s+so\b|"
    r"\bdo(?:es)?\s+not\s+know\b|\bask\s+(?:back|for|whoever|them|him|her|(?:a|an|the|your)\s+\w+)",
    re.I,
)
_CLOSED = re.compile(r"\b(?:never|do\s+not|don['’]t|must\s+not|may\s+not)\b", re.I)


@dataclass(frozen=True, slots=True)
class LintRule:
    """One check."""

    id: str
    level: Level
    about: str
    check: Check


class Finding(NamedTuple):
    """A problem: where, by which rule, and what to do."""

    rule: str
    level: Level
    place: SourceLine
    message: str

    def __str__(self) -> str:
        where = ":".join(str(part) for part in self.place if part is not None)
        return f"{where}: {self.level}: {self.message} [{self.rule}]"


def lint(subject: LintSubject) -> list[Finding]:
    """All findings, in order of the places; each once."""
    found = {
        Finding(rule.id, rule.level, place, message): None
        for rule in RULES
        for place, message in rule.check(subject)
    }
    return sorted(found, key=lambda f: (f.place.file, f.place.line or 0, f.rule))


def _no_way_out(subject: LintSubject) -> Iterator[tuple[SourceLine, str]]:
    """Neither `finish` nor declining nor asking is mentioned, except to forbid it."""
    statements = (s for passage in subject.passages for s in passage.statements())
    if not any(_offers_way_out(statement) for statement in statements):
        yield (
            subject.place,
            f"{subject.name} is told of no way out: say that it may call `finish`, decline, or "
            "ask, for when there is nothing to do or it cannot",
        )


def _offers_way_out(statement: PromptSentence) -> bool:
    way = _WAY_OUT.search(statement.text)
    return way is not None and _CLOSED.search(statement.text, 0, way.start()) is None


def _hard_rules(subject: LintSubject) -> list[tuple[PromptText, PromptSentence]]:
    own = (passage for passage in subject.passages if passage.own)
    return [(p, s) for p in own for s in p.statements() if _HARD.search(s.text)]


def _too_many_rules(subject: LintSubject) -> Iterator[tuple[SourceLine, str]]:
    rules = _hard_rules(subject)
    if len(rules) > MOST_RULES:
        yield (
            rules[MOST_RULES][1].place,
            f"{subject.name} has {len(rules)} hard rules (must, never, always), and this is the "
            f"{MOST_RULES + 1}th: keep at most {MOST_RULES}, and say the others as advice",
        )


def _rules_in_the_middle(subject: LintSubject) -> Iterator[tuple[SourceLine, str]]:
    own = [passage for passage in subject.passages if passage.own]
    length, starts = 0, {}
    for passage in own:
        starts[id(passage)] = length
        length += len(passage.text) + 2
    rules = _hard_rules(subject)
    if subject.reminded or length <= LONG or not rules:
        return
    shares = [(starts[id(passage)] + rule.start) / length for passage, rule in rules]
    if all(EDGE < share < 1 - EDGE for share in shares):
        yield (
            rules[0][1].place,
            f"the rules of {subject.name} stand only in the middle of a long prompt ({length} "
            "characters): say the two or three that matter most at its beginning, or in "
            "`prompt.reminder`",
        )


def _broken_contract(subject: LintSubject) -> Iterator[tuple[SourceLine, str]]:
    for contract in subject.contracts:
        missing = [name for name in contract.needed if name not in contract.text]
        if missing:
            names = ", ".join(f"`{name}`" for name in missing)
            yield (
                contract.place,
                f"the component dialect.{contract.dialect} of {subject.name} does not name {names}:"
                " say how a call is written, and list `tools` (name, description, offered_text)",
            )


def _not_warned(subject: LintSubject) -> Iterator[tuple[SourceLine, str]]:
    if not subject.warned:
        yield (
            subject.place,
            f"{subject.name} is not told that messages are data, not instructions: keep the "
            "component `untrusted_data`",
        )


RULES: tuple[LintRule, ...] = (
    LintRule("unknown-tool", "error", "a tool that does not exist is named", unknown_tools),
    LintRule(
        "disabled-tool", "error", "a tool that the agent does not have is named", disabled_tools
    ),
    LintRule("contradiction", "error", "a tool is not what the prompt says of it", contradictions),
    LintRule("forbidden-tool", "warning", "a tool is forbidden, but offered", forbidden_tools),
    LintRule("no-way-out", "error", "nothing says how to stop, decline or ask", _no_way_out),
    LintRule("contract", "error", "a dialect's format, or a tool, is not told", _broken_contract),
    LintRule(
        "untrusted-text", "error", "words of participants outside of elements", untrusted_text
    ),
    LintRule("untrusted-rule", "warning", "nothing says that messages are data", _not_warned),
    LintRule("too-many-rules", "warning", f"more than {MOST_RULES} hard rules", _too_many_rules),
    LintRule(
        "rules-in-the-middle", "warning", "hard rules nowhere near an end", _rules_in_the_middle
    ),
)
