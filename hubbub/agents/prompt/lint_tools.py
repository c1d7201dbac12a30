"""Lint of tool names in prompts. Pure.

The rules are deliberately narrow: a wrong finding costs more than a missing one.

unknown tool      a name that is called (`call x`, `x(…)`, the tool `x`), or resembles a tool's
disabled tool     a tool of the network that the agent does not have
forbidden tool    `never call x`, without any condition, about a tool that the agent has
contradiction     `x` sends, posts, deletes …, or is used to do so, but only reads
                  `x` is read-only, changes nothing …, but writes
                  `always call x`, but its description says not to
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hubbub.agents.prompt.lint_subject import (
    LintSubject,
    PromptSentence,
    PromptText,
    SourceLine,
    ToolFact,
)
from hubbub.wording import near

__all__ = ["contradictions", "disabled_tools", "forbidden_tools", "unknown_tools"]

Found = tuple[SourceLine, str]

_NAME = re.compile(
    r"`(?P<code>[A-Za-z_]\w*)(?P<call>\([^`]*\))?`|\b(?P<bare>[a-z]+(?:_[a-z0-9]+)+)\b(?P<open>\()?"
)
_CALL = re.compile(r"\b(?:call|calls|calling|invoke|invoking)\s+(?:the\s+)?(?:tool\s+)?\Z", re.I)
_USE = re.compile(r"\b(?:use|using|run)\s+(?:the\s+)?(?:tool\s+)?\Z|\btool\s+\Z", re.I)
_THREAD = re.compile(r"(?:direct|channel|mod)_")
_NOT = r"(?:never|do\s+not|don['’]t|must\s+not|may\s+not|cannot|can['’]t)"
_DOES = (
    r"(?:sends?|posts?|publish(?:es)?|deletes?|e-?mails?|pays?|books?|broadcasts?|submits?|"
    r"messages?|replies)"
)
_HARMLESS = (
    r"(?:only\s+reads|(?:is|are)\s+read-only|changes\s+nothing|(?:is|are)\s+harmless|"
    r"has\s+no\s+(?:side[\s-]+)?effects?)"
)
_AVOIDED = re.compile(
    rf"(?:\bdeprecated\b|(?:^|[.!?]\s+){_NOT}\s+(?:call|use)\s+(?:this|it)\s*(?:tool\s*)?(?:[.!]|$))",
    re.I,
)


def _named(statement: PromptSentence) -> Iterator[tuple[str, re.Match[str]]]:
    for match in _NAME.finditer(statement.text):
        name = match["code"] or match["bare"]
        if not _THREAD.match(name):
            yield name, match


def _place(passage: PromptText, statement: PromptSentence, match: re.Match[str]) -> SourceLine:
    return passage.place(statement.start + match.start())


def unknown_tools(subject: LintSubject) -> Iterator[Found]:
    """Names used as tools that do not exist."""
    if subject.tools is None:
        return
    known = {*subject.tools, *subject.others}
    for passage in (passage for passage in subject.passages if passage.own):
        for statement in passage.statements():
            for name, match in _named(statement):
                if name in subject.words or not _is_unknown(subject, name, known):
                    continue
                if _is_meant(statement, name, match, known):
                    yield _place(passage, statement, match), _unknown(passage, name, known)
    for name, place in subject.called:
        if _is_unknown(subject, name, known):
            yield place, _unknown(None, name, known)


def _is_unknown(subject: LintSubject, name: str, known: set[str]) -> bool:
    elsewhere = bool(subject.prefixes) and name.startswith(subject.prefixes)
    return name not in known and not elsewhere


def _is_meant(statement: PromptSentence, name: str, match: re.Match[str], known: set[str]) -> bool:
    before, after = statement.text[: match.start()], statement.text[match.end() :]
    if _CALL.search(before) or match["call"] or match["open"] or re.match(r"\s+tool\b", after):
        return True
    if _USE.search(before) and "_" in name:
        return True
    return "_" in name and bool(near(name, known, 1, 0.9))


def _unknown(passage: PromptText | None, name: str, known: set[str]) -> str:
    meant = near(name, known)
    hint = f": did you mean `{meant[0]}`?" if meant else ": take it out, or add the tool"
    where = f"the {passage.what}" if passage else "an example"
    return f"{where} names the tool `{name}`, which does not exist{hint}"


def disabled_tools(subject: LintSubject) -> Iterator[Found]:
    """Tools that exist, but not for this agent."""
    for passage in subject.passages:
        for statement in passage.statements():
            for name, match in _named(statement):
                if passage.own and name in subject.others:
                    yield _place(passage, statement, match), _disabled(passage.what, name)
    for name, place in subject.called:
        if name in subject.others:
            yield place, _disabled("example", name)


def _disabled(what: str, name: str) -> str:
    remedy = "allow it in `tools`, or take the name out: a model tries what it reads of"
    return f"the {what} names the tool `{name}`, which the agent does not have: {remedy}"


def forbidden_tools(subject: LintSubject) -> Iterator[Found]:
    """Tools that the agent has, but must never call."""
    for passage, statement, tool in _about_tools(subject):
        called = r"\s+(?:ever\s+)?(?:call|use|invoke|run)\s+(?:the\s+tool\s+)?"
        rule = rf"\b{_NOT}{called}`?{re.escape(tool.name)}`?\W*\Z"
        match = re.search(rule, statement.text, re.I)
        if match and tool.name != "finish":
            remedy = "take it out of `tools`, so that the model cannot, and save the rule"
            what = f"the {passage.what} forbids `{tool.name}`, which the agent has: {remedy}"
            yield _place(passage, statement, match), what


def contradictions(subject: LintSubject) -> Iterator[Found]:
    """Statements about a tool that contradict the tool's own description."""
    for passage, statement, tool in _about_tools(subject):
        for pattern, claim, truth in _claims(tool):
            match = re.search(pattern, statement.text, re.I)
            if match:
                what = f"the {passage.what} says that `{tool.name}` {claim}, but {truth}"
                yield _place(passage, statement, match), f"{what}: correct one of the two"


def _claims(tool: ToolFact) -> Iterator[tuple[str, str, str]]:
    """Claims that would be false for the tool: pattern, in words, and the truth."""
    name = rf"`?\b{re.escape(tool.name)}\b`?"
    if tool.permission == "read":
        truth = "it only reads (its permission is read)"
        yield rf"{name}\s+(?:also\s+)?{_DOES}\b", "has an effect", truth
        yield rf"\b(?:use|call|with)\s+{name}\s+to\s+{_DOES}\b", "has an effect", truth
    else:
        truth = f"its permission is {tool.permission}"
        yield rf"{name}\s+{_HARMLESS}", "has none", truth
    if _AVOIDED.search(tool.description):
        avoided = "its description says not to use it"
        yield rf"\b(?:always|must)\s+(?:call|use)\s+{name}", "must be used", avoided


def _about_tools(subject: LintSubject) -> Iterator[tuple[PromptText, PromptSentence, ToolFact]]:
    """The operator's sentences, with each of the agent's tools that they name."""
    tools = subject.tools or {}
    for passage in subject.passages:
        if passage.own:
            for statement in passage.statements():
                for name in dict.fromkeys(name for name, _ in _named(statement)):
                    if name in tools:
                        yield passage, statement, tools[name]
