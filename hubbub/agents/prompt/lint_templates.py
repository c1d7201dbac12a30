"""Lint of templates: participants' text outside of elements. Pure.

Participants' text is escaped so that it cannot close an element, but it can end quotation marks,
fences and headings. `| safe` turns the escaping off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jinja2 import Environment, TemplateSyntaxError, nodes

from hubbub.agents.prompt.lint_subject import LintSubject, SourceLine, TemplateText

__all__ = ["UNTRUSTED", "untrusted_text"]

UNTRUSTED = frozenset(
    {"message_threads", "incoming_message", "incoming_messages", "participants", "state"}
)
"""Template variables that contain participants' text."""
_HARMLESS = frozenset(
    {"hop", "id", "kind", "seq", "sender_id", "sender_kind", "sent_at", "thread_id", "tseq", "type"}
)
"""Fields that the hub has set, or that are ids."""
_COUNTS = frozenset({"length", "count"})
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z_][\w.-]*)(?:\s[^<>]*?)?(?P<empty>/?)>")
_UNFINISHED = re.compile(r"<[A-Za-z_][\w.-]*\s[^<>]*\Z")

Found = tuple[SourceLine, str]


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
            case nodes.Getattr() if expr.attr in _HARMLESS:
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
