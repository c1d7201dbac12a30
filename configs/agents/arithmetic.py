"""Exact arithmetic on fractions, with limits, and the evaluation of expression trees.

Results are exact if possible (0.1 + 0.2 is 0.3). Roots, logarithms and angles have 50 digits, or a
float's 15, and are marked as approximate. No input is executed as code, and `9**9**9` is refused
before it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from exact import Value, factorial, power, sized
from expression import Binary, Call, Convert, Expression, Name, Number, Problem, Unary, parse
from functions import CONSTANTS, FUNCTIONS, OutOfDomain

__all__ = ["Algebra", "Numbers", "evaluate", "fold"]

V = TypeVar("V")


class Algebra(Protocol[V]):
    """An evaluator's operations on its values. Each method raises Problem with the place."""

    def number(self, value: Fraction, at: int) -> V: ...

    def name(self, text: str, at: int) -> V: ...

    def unary(self, op: str, operand: V, at: int) -> V: ...

    def binary(self, op: str, left: V, right: V, at: int) -> V: ...

    def call(self, function: str, arguments: Sequence[V], at: int) -> V: ...

    def convert(self, value: V, target: V, at: int) -> V: ...


def fold(tree: Expression, algebra: Algebra[V]) -> V:
    """The value of `tree`. `100 + 20%` is 120, as on a pocket calculator."""
    match tree:
        case Number(value, at):
            return algebra.number(value, at)
        case Name(text, at):
            return algebra.name(text, at)
        case Unary(op, operand, at):
            return algebra.unary(op, fold(operand, algebra), at)
        case Binary("+" | "-" as op, left, Unary("%") as right, at):
            base = fold(left, algebra)
            part = algebra.binary("*", base, fold(right, algebra), right.at)
            return algebra.binary(op, base, part, at)
        case Binary(op, left, right, at):
            return algebra.binary(op, fold(left, algebra), fold(right, algebra), at)
        case Call(function, arguments, at):
            return algebra.call(function, [fold(a, algebra) for a in arguments], at)
        case Convert(value, target, at):
            return algebra.convert(fold(value, algebra), fold(target, algebra), at)


def evaluate(text: str) -> Value:
    """The value of an expression without units. Raises Problem with the place of the error."""
    return fold(parse(text), Numbers())


class Numbers:
    """Arithmetic on plain numbers."""

    def number(self, value: Fraction, at: int) -> Value:
        return sized(Value(value), at)

    def name(self, text: str, at: int) -> Value:
        if text.lower() not in CONSTANTS:
            raise Problem(f"I do not know {text!r}", at)
        return CONSTANTS[text.lower()]

    def unary(self, op: str, operand: Value, at: int) -> Value:
        match op:
            case "-":
                return Value(-operand.number, operand.exact)
            case "+":
                return operand
            case "%":
                return Value(operand.number / 100, operand.exact)
            case _:
                return factorial(operand, at)

    def binary(self, op: str, left: Value, right: Value, at: int) -> Value:
        if op == "^":
            return sized(power(left, right, at), at)
        if op == "and":
            raise Problem("two numbers side by side need an operator between them", at)
        if right.number == 0 and op in ("/", "//", "%"):
            raise Problem("this divides by zero", at)
        number = _BINARY[op](left.number, right.number)
        return sized(Value(Fraction(number), left.exact and right.exact), at)

    def call(self, function: str, arguments: Sequence[Value], at: int) -> Value:
        known = FUNCTIONS.get(function)
        if known is None:
            raise Problem(f"I know no function {function!r}", at)
        if not known.least <= len(arguments) <= known.most:
            raise Problem(f"{function} takes {known.arity}", at)
        try:
            return sized(known.compute(list(arguments)), at)
        except OutOfDomain as error:
            raise Problem(f"{function} {error}", at) from error

    def convert(self, value: Value, target: Value, at: int) -> Value:
        raise Problem("there is no unit to convert to", at)


_BINARY: dict[str, Callable[[Fraction, Fraction], Fraction | int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
