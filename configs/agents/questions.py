"""Splits a question into facts to look up and a calculation.

    how many kilometres is the diameter of Jupiter plus the diameter of Saturn, in miles?

is two look-ups and `(…) + (…) in miles`. It supports + - * / and their words, sums, differences,
averages, ratios, multiples, `how much larger is A than B`, and a unit for the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from expression import Problem, parse
from markdown_pages import measured
from phrasing import plain_question, split_target

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True)
class Plan:
    """`lookups` are questions for an agent that looks things up; `formula` has `{0}`, `{1}`, ...
    for their answers."""

    lookups: tuple[str, ...]
    formula: str
    target: str | None = None

    @property
    def calculates(self) -> bool:
        """Whether there is a calculation in addition to the look-ups."""
        return self.formula != "{0}" or self.target is not None

    def filled(self, values: Sequence[str]) -> str:
        """The expression with the values in their places."""
        expression = self.formula.format(*(f"({value})" for value in values))
        return expression if self.target is None else f"{expression} in {self.target}"


def make_plan(text: str) -> Plan | None:
    """A plan to answer `text`; None if it is not a question of this kind."""
    question, target = split_target(plain_question(text))
    question = measured(question)
    reader = _Reader()
    try:
        formula = reader.formula(question)
    except _NotUnderstood:
        return None
    return Plan(tuple(reader.lookups), formula, target) if reader.lookups else None


class _NotUnderstood(Exception):
    """The question is of another kind."""


_COMPARISON = re.compile(
    r"\Ahow (?P<much>much|many times|many .{1,20}?|far) "
    r"(?:larger|bigger|longer|higher|taller|heavier|farther|further|greater|wider|more massive|"
    r"smaller|shorter|lower|lighter|nearer|closer|less|more) is (?P<a>.+) than (?P<b>.+)\Z",
    re.IGNORECASE,
)
_SMALLER = re.compile(r"\b(?:smaller|shorter|lower|lighter|nearer|closer|less)\b", re.IGNORECASE)
_AGGREGATE = re.compile(
    r"\A(?:the )?(?P<name>sum|total|product|average|mean|difference|ratio|quotient|maximum|"
    r"minimum|largest|smallest) (?:of|between) (?P<rest>.+)\Z",
    re.IGNORECASE,
)
_MULTIPLE = re.compile(
    r"\A(?P<factor>twice|double|half(?: of)?|(?:a |one )?third of|(?:a |one )?quarter of"
    r"|\d[\d.,]*\s*%\s*of)\s+(?P<rest>.+)\Z",
    re.IGNORECASE,
)
_FACTORS = {"twice": "2", "double": "2", "half": "1 / 2", "third": "1 / 3", "quarter": "1 / 4"}
_ROOT = re.compile(r"\A(?:the )?square root of (?P<rest>.+)\Z", re.IGNORECASE)
_OPERATOR = re.compile(
    r"\s+(?P<word>plus|minus|times|multiplied by|divided by|over)\s+"
    r"|\s*(?P<sign>[+*/×÷]|(?<=\s)-(?=\s))\s*",
    re.IGNORECASE,
)
_SIGNS = {
    "plus": "+", "minus": "-", "times": "*", "multiplied by": "*", "divided by": "/", "over": "/",
    "×": "*", "÷": "/",
}  # fmt: skip
_LOOKUP = re.compile(r"[^\W\d].*\bof\b.*\w|\w.*['’]s? \w", re.IGNORECASE)


class _Reader:
    """Parses one question and collects its `lookups`."""

    def __init__(self) -> None:
        self.lookups: list[str] = []

    def formula(self, text: str) -> str:
        """The text as an expression with places. Raises _NotUnderstood."""
        text = text.strip(" ,")
        if match := _COMPARISON.match(text):
            return self._comparison(match)
        if match := _AGGREGATE.match(text):
            return self._aggregate(match["name"].lower(), match["rest"])
        pieces = _split(text)
        if len(pieces) > 1:
            return " ".join(self._piece(piece) for piece in pieces)
        return self._operand(text)

    def _comparison(self, match: re.Match[str]) -> str:
        first, second = _grouped(self.formula(match["a"])), _grouped(self.formula(match["b"]))
        if _SMALLER.search(match[0]):
            first, second = second, first
        return f"{first} {'/' if match['much'].lower() == 'many times' else '-'} {second}"

    def _aggregate(self, name: str, rest: str) -> str:
        parts = [self.formula(part) for part in _listed(rest, "to" if name == "ratio" else "and")]
        if len(parts) < 2:
            raise _NotUnderstood
        if name in ("difference", "ratio", "quotient") and len(parts) != 2:
            raise _NotUnderstood
        joined = {"sum": "+", "total": "+", "product": "*", "ratio": "/", "quotient": "/"}
        if name in joined:
            return f" {joined[name]} ".join(_grouped(part) for part in parts)
        if name == "difference":
            return f"abs({_grouped(parts[0])} - {_grouped(parts[1])})"
        function = {"maximum": "max", "largest": "max", "minimum": "min", "smallest": "min"}
        return f"{function.get(name, 'mean')}({', '.join(map(_grouped, parts))})"

    def _piece(self, piece: str) -> str:
        return piece if piece in "+-*/" else self._operand(piece)

    def _operand(self, text: str) -> str:
        text = text.strip(" ,")
        if text.startswith("(") and text.endswith(")"):
            return f"({self.formula(text[1:-1])})"
        if match := _MULTIPLE.match(text):
            return f"{_factor(match['factor'])} * {self._operand(match['rest'])}"
        if match := _ROOT.match(text):
            return f"sqrt({self.formula(match['rest'])})"
        if _is_arithmetic(text):
            return text
        if not _LOOKUP.match(text):
            raise _NotUnderstood
        self.lookups.append(text)
        return f"{{{len(self.lookups) - 1}}}"


def _grouped(formula: str) -> str:
    """In parentheses, unless it is one place or number."""
    return formula if re.fullmatch(r"\{\d+\}|[\d.]+", formula) else f"({formula})"


def _factor(words: str) -> str:
    if "%" in words:
        return words.replace("of", "").replace("%", "").strip() + "%"
    name = re.sub(r"\b(?:a|one|of)\b", "", words.lower()).strip()
    return _FACTORS[name]


def _is_arithmetic(text: str) -> bool:
    """Whether `text` is a number, perhaps with a unit, rather than something to look up."""
    if not re.match(r"[\d.(√]|pi\b|sqrt\b", text):
        return False
    try:
        parse(text)
    except Problem:
        return False
    return "{" not in text


def _split(text: str) -> list[str]:
    """Alternating operands and signs; text in parentheses is not split."""
    pieces, start, depth = [], 0, 0
    for match in re.finditer(rf"[()]|{_OPERATOR.pattern}", text, re.IGNORECASE):
        if match[0] in ("(", ")"):
            depth += 1 if match[0] == "(" else -1
        elif depth == 0 and match.start() > start:
            sign = (match["word"] or match["sign"]).lower()
            pieces += [text[start : match.start()], _SIGNS.get(sign, sign)]
            start = match.end()
    return [*pieces, text[start:]]


def _listed(text: str, last: str) -> list[str]:
    """`A, B and C` as three parts."""
    head, separator, tail = text.rpartition(f" {last} ")
    if not separator:
        head, separator, tail = text.rpartition(" and ")
    return [*(part for part in head.split(", ") if part.strip()), tail] if separator else [text]
