"""A linter for prompts. Pure.

    for finding in lint(subject):
        print(finding)

Levels: an `error` is a contradiction or a gap, a `warning` is advice. The rules about tools are
deliberately narrow: a wrong finding costs more than a missing one.

unknown tool      a name that is called (`call x`, `x(…)`, the tool `x`), or resembles a tool's
disabled tool     a tool of the network that the agent does not have
forbidden tool    `never call x`, without any condition, about a tool that the agent has
contradiction     `x` sends, posts, deletes …, or is used to do so, but only reads
                  `x` is read-only, changes nothing …, but writes
                  `always call x`, but its description says not to
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from jinja2 import Environment, TemplateSyntaxError, nodes

from hubbub.agents.prompt.lint_subject import (
    LintSubject,
    PromptSentence,
    PromptText,
    SourceLine,
    TemplateText,
    ToolFact,
)
from hubbub.wording import near

__all__ = ["MOST_RULES", "RULES", "Finding", "disabled_tools", "lint"]


# Templates: participants' text outside of elements. It is escaped so that it cannot close an
# element, but it can end quotation marks, fences and headings. `| safe` turns the escaping off.


UNTRUSTED = frozenset(
    {"message_threads", "incoming_message", "incoming_messages", "participants", "state"}
)
"""Template variables that contain participants' text."""
_TRUSTED_FIELDS = frozenset(
    {"hop", "id", "kind", "seq", "sender_id", "sender_kind", "sent_at", "thread_id", "tseq", "type"}
)
"""Fields that the hub has set, or that are ids."""
_COUNTS = frozenset({"length", "count"})
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z_][\w.-]*)(?:\s[^<>]*?)?(?P<empty>/?)>")
_UNFINISHED = re.compile(r"<[A-Za-z_][\w.-]*\s[^<>]*\Z")

Found = tuple[SourceLine, str]
"""A place, and what is wrong there."""


def untrusted_text(subject: LintSubject) -> Iterator[Found]:
    """Places where a template prints participants' text outside of any element."""
    for template in subject.templates:
        yield from _Reader(template).findings()


class _Reader:
    """Walks through a template in rendering order, each loop once."""

    def __init__(self, template: TemplateText):
        self._template = template
        self._tainted = set(UNTRUSTED)
        self._macros: dict[str, nodes.Macro] = {}

    def findings(self) -> Iterator[Found]:
        try:
            tree = Environment().parse(self._template.source)
        except TemplateSyntaxError:
            return  # compiling it reports the error
        self._macros = {macro.name: macro for macro in tree.find_all(nodes.Macro)}
        for name in self._fed(tree):
            self._tainted |= {argument.name for argument in self._macros[name].args}
        yield from self._walk(tree.body, [""])

    def _fed(self, tree: nodes.Template) -> set[str]:
        """Macros that are passed participants' text, or passed to other macros."""
        called = [c for c in tree.find_all(nodes.Call) if isinstance(c.node, nodes.Name)]
        direct = {
            call.node.name
            for call in called
            if isinstance(call.node, nodes.Name) and any(map(self._carries, call.args))
        }
        handed = {a.name for call in called for a in call.args if isinstance(a, nodes.Name)}
        return (direct | handed) & set(self._macros)

    def _walk(self, body: Sequence[nodes.Node], before: list[str]) -> Iterator[Found]:
        """`before` is the text so far, as a single growing item."""
        for node in body:
            match node:
                case nodes.Output():
                    for part in node.nodes:
                        yield from self._output(part, before)
                case nodes.For():
                    if self._carries(node.iter):
                        self._tainted |= {name.name for name in _names(node.target)}
                    yield from self._walk(node.body, before)
                    yield from self._walk(node.else_, list(before))
                case nodes.If():
                    start = list(before)
                    yield from self._walk(node.body, before)
                    for other in node.elif_:
                        yield from self._walk(other.body, list(start))
                    yield from self._walk(node.else_, list(start))
                case nodes.Assign():
                    if self._carries(node.node):
                        self._tainted |= {name.name for name in _names(node.target)}
                case nodes.Macro():
                    yield from self._walk(node.body, [""])
                case nodes.With() | nodes.Scope() | nodes.FilterBlock() | nodes.CallBlock():
                    yield from self._walk(node.body, before)
                case nodes.AssignBlock():
                    yield from self._walk(node.body, [""])

    def _output(self, part: nodes.Expr, before: list[str]) -> Iterator[Found]:
        if isinstance(part, nodes.TemplateData):
            before[0] += part.data
            return
        before[0] += "x"
        if not self._carries(part):
            return
        place = SourceLine(self._template.file, part.lineno)
        if any(node.name == "safe" for node in _filters(part)):
            yield place, "`| safe` lets participants close the element: take it away"
        if not _inside(before[0][:-1]):
            name = next(n.name for n in _names(part) if n.name in self._tainted)
            remedy = "put it between tags, for example <message>…</message>"
            yield place, f"`{name}` is what others wrote, outside of any element: {remedy}"

    def _carries(self, expr: nodes.Node) -> bool:
        """Whether the value contains participants' text."""
        match expr:
            case nodes.Name():
                return expr.name in self._tainted
            case nodes.CondExpr():
                return self._carries(expr.expr1) or (
                    expr.expr2 is not None and self._carries(expr.expr2)
                )
            case nodes.Compare() | nodes.Test() | nodes.Not() | nodes.Const():
                return False
            case nodes.Filter() if expr.name in _COUNTS:
                return False
            case nodes.Getattr() if expr.attr in _TRUSTED_FIELDS:
                return False
            case nodes.Call(node=nodes.Name(name=called)) if called in self._macros:
                return False  # its output is checked inside the macro
            case _:
                return any(map(self._carries, expr.iter_child_nodes()))


def _filters(node: nodes.Node) -> Iterator[nodes.Filter]:
    if isinstance(node, nodes.Filter):
        yield node
    yield from node.find_all(nodes.Filter)


def _names(node: nodes.Node) -> Iterator[nodes.Name]:
    if isinstance(node, nodes.Name):
        yield node
    yield from node.find_all(nodes.Name)


def _inside(text: str) -> bool:
    """Whether text that follows stands in an element, or in an attribute of one."""
    if _UNFINISHED.search(text):
        return True
    open_: list[str] = []
    for tag in _TAG.finditer(text):
        if tag["empty"]:
            continue
        if not tag["end"]:
            open_.append(tag["name"])
        elif tag["name"] in open_:
            del open_[len(open_) - 1 - open_[::-1].index(tag["name"]) :]
    return bool(open_)


# Tool names in prompts.


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
    names = {*subject.tools, *subject.others}
    for passage in (passage for passage in subject.passages if passage.own):
        for statement in passage.statements():
            for name, match in _named(statement):
                if name in subject.words or not _is_unknown(subject, name, names):
                    continue
                if _is_meant(statement, name, match, names):
                    yield _place(passage, statement, match), _unknown(passage, name, names)
    for name, place in subject.called:
        if _is_unknown(subject, name, names):
            yield place, _unknown(None, name, names)


def _is_unknown(subject: LintSubject, name: str, names: set[str]) -> bool:
    elsewhere = bool(subject.prefixes) and name.startswith(subject.prefixes)
    return name not in names and not elsewhere


def _is_meant(statement: PromptSentence, name: str, match: re.Match[str], names: set[str]) -> bool:
    before, after = statement.text[: match.start()], statement.text[match.end() :]
    if _CALL.search(before) or match["call"] or match["open"] or re.match(r"\s+tool\b", after):
        return True
    if _USE.search(before) and "_" in name:
        return True
    return "_" in name and bool(near(name, names, 1, 0.9))


def _unknown(passage: PromptText | None, name: str, names: set[str]) -> str:
    meant = near(name, names)
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


# The rules.


Level = Literal["error", "warning"]
Check = Callable[[LintSubject], Iterator[Found]]

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
    findings = {
        Finding(rule.id, rule.level, place, message): None
        for rule in RULES
        for place, message in rule.check(subject)
    }
    return sorted(findings, key=lambda f: (f.place.file, f.place.line or 0, f.rule))


def _no_way_out(subject: LintSubject) -> Iterator[Found]:
    """Neither `finish` nor declining nor asking is mentioned, except to forbid it."""
    statements = (s for passage in subject.passages for s in passage.statements())
    if not any(_offers_way_out(statement) for statement in statements):
        yield (
            subject.place,
            f"{subject.name} has no way out: say that it can call `finish`, decline, or ask, in "
            "case there is nothing to do or it cannot do it",
        )


def _offers_way_out(statement: PromptSentence) -> bool:
    way = _WAY_OUT.search(statement.text)
    return way is not None and _CLOSED.search(statement.text, 0, way.start()) is None


def _hard_rules(subject: LintSubject) -> list[tuple[PromptText, PromptSentence]]:
    own = (passage for passage in subject.passages if passage.own)
    return [(p, s) for p in own for s in p.statements() if _HARD.search(s.text)]


def _too_many_rules(subject: LintSubject) -> Iterator[Found]:
    rules = _hard_rules(subject)
    if len(rules) > MOST_RULES:
        yield (
            rules[MOST_RULES][1].place,
            f"{subject.name} has {len(rules)} hard rules (must, never, always), and this is the "
            f"{MOST_RULES + 1}th: keep at most {MOST_RULES}, and say the others as advice",
        )


def _rules_in_the_middle(subject: LintSubject) -> Iterator[Found]:
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


def _broken_contract(subject: LintSubject) -> Iterator[Found]:
    for contract in subject.contracts:
        missing = [name for name in contract.needed if name not in contract.text]
        if missing:
            names = ", ".join(f"`{name}`" for name in missing)
            yield (
                contract.place,
                f"the component dialect.{contract.dialect} of {subject.name} does not name {names}:"
                " say how a call is written, and list `tools` (name, description, offered_text)",
            )


def _not_warned(subject: LintSubject) -> Iterator[Found]:
    if not subject.warned:
        yield (
            subject.place,
            f"the prompt of {subject.name} does not say that messages are data, not instructions: "
            "keep the component `untrusted_data`",
        )


RULES: tuple[LintRule, ...] = (
    LintRule("unknown-tool", "error", "a tool that does not exist is named", unknown_tools),
    LintRule(
        "disabled-tool", "error", "a tool that the agent does not have is named", disabled_tools
    ),
    LintRule("contradiction", "error", "a tool is not what the prompt says of it", contradictions),
    LintRule("forbidden-tool", "warning", "a tool is forbidden, but offered", forbidden_tools),
    LintRule("no-way-out", "error", "nothing says how to stop, decline or ask", _no_way_out),
    LintRule("contract", "error", "a dialect's format, or a tool, is missing", _broken_contract),
    LintRule(
        "untrusted-text", "error", "words of participants outside of elements", untrusted_text
    ),
    LintRule("untrusted-rule", "warning", "nothing says that messages are data", _not_warned),
    LintRule("too-many-rules", "warning", f"more than {MOST_RULES} hard rules", _too_many_rules),
    LintRule(
        "rules-in-the-middle", "warning", "hard rules nowhere near an end", _rules_in_the_middle
    ),
)
