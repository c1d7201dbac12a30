"""A Pratt parser that turns calculator input into a tree, without evaluating it.

    2 + 3*4^2          numbers, + - * / // % ^ ** ! and parentheses
    1,234.5  1e6  20%  thousands separators, exponents, percentages (before a number, name or
                       parenthesis % is the remainder)
    sqrt(2) pi         functions and names
    5 km 300 m in mi   units behind numbers, and a conversion at the end

The parser does not interpret names: the evaluator resolves `pi` or `km`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tokens import Problem, Token, tokens

__all__ = [
    "Binary",
    "Call",
    "Convert",
    "Expression",
    "Name",
    "Number",
    "Problem",
    "Unary",
    "parse",
]

MAX_LENGTH = 500
MAX_DEPTH = 50


@dataclass(frozen=True)
class Number:
    value: Fraction
    at: int


@dataclass(frozen=True)
class Name:
    """One or more words: a constant or a unit."""

    text: str
    at: int


@dataclass(frozen=True)
class Unary:
    """`op` is `-`, `+`, `!` or `%` (a percentage)."""

    op: str
    operand: Expression
    at: int


@dataclass(frozen=True)
class Binary:
    """`op` is `+ - * / // % ^`, or `and` for the parts of one quantity, as in 3 h 20 min."""

    op: str
    left: Expression
    right: Expression
    at: int


@dataclass(frozen=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]
    at: int


@dataclass(frozen=True)
class Convert:
    """`value` in units of `target`; stands only at the top."""

    value: Expression
    target: Expression
    at: int


Expression = Number | Name | Unary | Binary | Call | Convert


_ROOTS = {"√": "sqrt", "∛": "cbrt"}
_LEFT = {"+": 10, "-": 10, "*": 20, "/": 20, "//": 20, "%": 20, "mod": 20, "of": 20}
_UNARY, _PARTS, _BESIDE, _POWER, _POSTFIX = 30, 35, 40, 50, 60


def parse(text: str) -> Expression:
    """The tree of `text`. Raises Problem with the place of the error."""
    if len(text) > MAX_LENGTH:
        raise Problem(f"that is over {MAX_LENGTH} characters", MAX_LENGTH)
    return _Parser(list(tokens(text))).whole()


class _Parser:
    def __init__(self, tokens: list[Token]):
        self._tokens, self._position, self._depth = tokens, 0, 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _after(self, steps: int = 1) -> Token:
        return self._tokens[min(self._position + steps, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._next
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token

    def whole(self) -> Expression:
        tree = self._expression(0)
        if self._next.kind == "convert":
            word = self._take()
            if word.text != "=" or self._next.kind != "end":  # `2 + 2 =` asks for the result
                tree = Convert(tree, self._expression(0), word.at)
        if self._next.kind != "end":
            raise self._surprise(self._next)
        return tree

    @staticmethod
    def _surprise(token: Token) -> Problem:
        if token.kind == "end":
            return Problem("something is missing here", token.at)
        if token.text == ",":
            return Problem(
                "a comma separates thousands (1,234); decimals have a point (1.5)", token.at
            )
        return Problem(f"I did not expect {token.text!r} here", token.at)

    def _expression(self, floor: int) -> Expression:
        """Everything that binds more tightly than `floor`."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Problem(f"that is nested more than {MAX_DEPTH} deep", self._next.at)
        left = self._operand()
        while (longer := self._extended(left, floor)) is not None:
            left = longer
        self._depth -= 1
        return left

    # The first of an expression ---------------------------------------------------------------

    def _operand(self) -> Expression:
        if self._stands_for_inch():
            return self._names()
        token = self._take()
        if token.kind == "number":
            return self._fraction(token)
        if token.kind == "call":
            return self._call(token)
        if token.kind == "name":
            self._position -= 1
            return self._names()
        if token.text in ("-", "+"):
            return Unary(token.text, self._expression(_UNARY), token.at)
        if token.text in _ROOTS:
            return Call(_ROOTS[token.text], (self._expression(_UNARY),), token.at)
        if token.text == "(":
            inner = self._expression(0)
            self._close(token)
            return inner
        raise self._surprise(token)

    def _fraction(self, token: Token) -> Expression:
        """A number; `1/2` written without spaces before a unit is one number."""
        slash, below, unit = self._next, self._after(1), self._after(2)
        tight = token.end == slash.at and slash.end == below.at
        if (
            slash.text == "/"
            and below.kind == "number"
            and tight
            and (unit.kind == "name" or unit.text == "in")
        ):
            self._position += 2
            if below.value:
                return Number(token.value / below.value, token.at)
            raise Problem("this divides by zero", slash.at)
        return Number(token.value, token.at)

    def _call(self, name: Token) -> Expression:
        if _is_unit_like(name.text):
            self._position -= 1
            return self._names()
        bracket = self._take()
        arguments: list[Expression] = []
        if self._next.text != ")":
            arguments.append(self._expression(0))
            while self._next.text == ",":
                self._take()
                arguments.append(self._expression(0))
        self._close(bracket)
        return Call(name.text.lower(), tuple(arguments), name.at)

    def _close(self, bracket: Token) -> None:
        if self._next.kind == "end":
            raise Problem("this parenthesis is never closed", bracket.at)
        if self._next.text != ")":
            raise self._surprise(self._next)
        self._take()

    def _names(self) -> Name:
        first = self._take()
        words = [first.text]
        while self._next.kind == "name" and self._next.text.lower() not in ("and", "x"):
            words.append(self._take().text)
        return Name("inch" if words == ["in"] else " ".join(words), first.at)

    def _stands_for_inch(self) -> bool:
        """Whether `in` is the unit: nothing that could be a target follows it."""
        follows = self._after()
        ends = follows.kind in ("end", "convert", "op", "number") and follows.text not in (
            "(",
            *_ROOTS,
        )
        return self._next.text == "in" and self._next.kind == "convert" and ends

    def _is_times(self) -> bool:
        """Whether the next word is an `x` between two operands."""
        after = self._after()
        return self._next.text in ("x", "X") and (
            after.kind in ("number", "call") or after.text == "("
        )

    # What follows an expression ---------------------------------------------------------------

    def _extended(self, left: Expression, floor: int) -> Expression | None:
        """`left` with the next operator applied; None if that binds too loosely."""
        token = self._next
        if token.kind == "op" and token.text not in ("(", ")", ",", *_ROOTS):
            return self._operator(left, token, floor)
        if self._is_times() and token.kind == "name":
            return self._infix(left, token, "*", 20, floor)
        return self._beside(left, token, floor)

    def _operator(self, left: Expression, token: Token, floor: int) -> Expression | None:
        op = token.text
        if op in ("!", "²", "³") or (op == "%" and not self._percent_is_modulo()):
            return self._postfix(left, token, floor)
        if op == "^":
            return self._infix(left, token, "^", _POWER, floor, right_first=True)
        if op in _LEFT:
            plain = {"of": "*", "mod": "%"}.get(op, op)
            return self._infix(left, token, plain, _LEFT[op], floor)
        raise self._surprise(token)

    def _percent_is_modulo(self) -> bool:
        after = self._after()
        return after.kind in ("number", "call", "name") or after.text in ("(", *_ROOTS)

    def _postfix(self, left: Expression, token: Token, floor: int) -> Expression | None:
        if floor >= _POSTFIX:
            return None
        self._take()
        if token.text in ("²", "³"):
            power = Number(Fraction("²³".index(token.text) + 2), token.at)
            return Binary("^", left, power, token.at)
        return Unary(token.text, left, token.at)

    def _infix(
        self,
        left: Expression,
        token: Token,
        op: str,
        binding: int,
        floor: int,
        right_first: bool = False,
    ) -> Expression | None:
        if binding <= floor:
            return None
        self._take()
        return Binary(op, left, self._expression(binding - right_first), token.at)

    def _beside(self, left: Expression, token: Token, floor: int) -> Expression | None:
        """Two operands side by side: `2 pi`, `5 km`, `2 (3 + 4)`, `3 h 20 min`."""
        joined = token.text.lower() == "and" and self._after().kind == "number"
        if (token.kind == "number" or joined) and _is_quantity(left):
            if floor >= _PARTS:
                return None
            if joined:
                self._take()
            return Binary("and", left, self._expression(_PARTS), token.at)
        inch = isinstance(left, Number) and self._stands_for_inch()
        starts = token.kind in ("name", "call") or token.text in ("(", *_ROOTS) or inch
        if not starts or floor >= _BESIDE:
            return None
        return Binary("*", left, self._expression(_BESIDE), token.at)


def _is_unit_like(word: str) -> bool:
    return word in ("ft", "inch") or word.startswith("°")


def _is_quantity(tree: Expression) -> bool:
    """Whether `tree` is a number with a unit, or several such parts."""
    if not isinstance(tree, Binary):
        return False
    if tree.op == "and":
        return True
    return tree.op == "*" and isinstance(tree.left, Number) and isinstance(tree.right, Name)
