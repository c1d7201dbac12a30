"""The functions and constants for calculations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from exact import DIGITS, Value, as_decimal, power

__all__ = ["CONSTANTS", "FUNCTIONS", "Function", "OutOfDomain"]


class OutOfDomain(Exception):
    """The function is not defined for the argument; the text continues after its name."""


@dataclass(frozen=True)
class Function:
    compute: Callable[[list[Value]], Value]
    least: int = 1
    most: int = 1

    @property
    def arity(self) -> str:
        if self.least == self.most:
            return "one argument" if self.least == 1 else f"{self.least} arguments"
        most = f" to {self.most}" if self.most < 100 else " or more"
        return f"{self.least}{most} arguments"


def _exactly(compute: Callable[..., Fraction | int], least: int = 1, most: int = 1) -> Function:
    """A function whose result is as exact as its arguments."""

    def run(values: list[Value]) -> Value:
        result = compute(*(v.number for v in values))
        return Value(Fraction(result), all(v.exact for v in values))

    return Function(run, least, most)


def _floating(compute: Callable[..., float], arguments: int = 1) -> Function:
    """A function of the math module: 15 digits."""

    def run(values: list[Value]) -> Value:
        try:
            result = compute(*(float(v.number) for v in values))
        except (ValueError, OverflowError) as error:
            raise OutOfDomain("is not defined there") from error
        # a float has about 15 digits: further digits are noise (sin(pi) is 0)
        return Value(Fraction(Decimal(f"{result:.15f}")), exact=False)

    return Function(run, arguments, arguments)


def _precise(compute: Callable[[Decimal], Decimal]) -> Function:
    """A logarithm with 50 digits."""

    def run(values: list[Value]) -> Value:
        if values[0].number <= 0:
            raise OutOfDomain("is defined for positive numbers only")
        with localcontext() as context:
            context.prec = DIGITS
            result = Fraction(compute(as_decimal(values[0].number)))
        return Value(result, exact=values[0].exact and result.denominator == 1)

    return Function(run)


def _sqrt(values: list[Value]) -> Value:
    return _nth_root([values[0], Value(Fraction(2))])


def _nth_root(values: list[Value]) -> Value:
    number, degree = values[0], values[1].number
    if degree.denominator != 1 or not 1 <= degree <= 64:
        raise OutOfDomain("needs a degree from 1 to 64")
    if number.number < 0:
        if degree % 2 == 0:
            raise OutOfDomain("of a negative number is not real")
        mirrored = _nth_root([Value(-number.number, number.exact), values[1]])
        return Value(-mirrored.number, mirrored.exact)
    return power(number, Value(1 / degree), 0)


def _exp(values: list[Value]) -> Value:
    if abs(values[0].number) > 2000:
        raise OutOfDomain("of that is out of range")
    with localcontext() as context:
        context.prec = DIGITS
        return Value(Fraction(as_decimal(values[0].number).exp()), values[0].number == 0)


_inexact_log2 = _precise(lambda number: number.ln() / Decimal(2).ln())


def _log2(values: list[Value]) -> Value:
    number = values[0].number
    if number > 0:
        exponent = number.numerator.bit_length() - number.denominator.bit_length()
        if number == Fraction(2) ** exponent:
            return Value(Fraction(exponent), values[0].exact)
    return _inexact_log2.compute(values)


def _round(number: Fraction, digits: Fraction = Fraction(0)) -> Fraction:
    """Half away from zero, as people round."""
    if digits.denominator != 1 or abs(digits) > 100:
        raise OutOfDomain("needs a whole number of digits")
    scale = Fraction(10) ** int(digits)
    scaled = abs(number) * scale
    rounded = math.floor(scaled + Fraction(1, 2)) / scale
    return rounded if number >= 0 else -rounded


def _whole(*numbers: Fraction) -> list[int]:
    if any(n.denominator != 1 for n in numbers):
        raise OutOfDomain("needs whole numbers")
    return [int(n) for n in numbers]


def _mean(*numbers: Fraction) -> Fraction:
    return sum(numbers, Fraction(0)) / len(numbers)


def _median(*numbers: Fraction) -> Fraction:
    ordered, half = sorted(numbers), len(numbers) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


_MANY = 1000
FUNCTIONS: dict[str, Function] = {
    "abs": _exactly(abs),
    "round": _exactly(_round, 1, 2),
    "floor": _exactly(math.floor),
    "ceil": _exactly(math.ceil),
    "min": _exactly(lambda *n: min(n), 1, _MANY),
    "max": _exactly(lambda *n: max(n), 1, _MANY),
    "sum": _exactly(lambda *n: sum(n, Fraction(0)), 1, _MANY),
    "mean": _exactly(_mean, 1, _MANY),
    "average": _exactly(_mean, 1, _MANY),
    "median": _exactly(_median, 1, _MANY),
    "gcd": _exactly(lambda *n: math.gcd(*_whole(*n)), 1, _MANY),
    "lcm": _exactly(lambda *n: math.lcm(*_whole(*n)), 1, _MANY),
    "sqrt": Function(_sqrt),
    "cbrt": Function(lambda v: _nth_root([v[0], Value(Fraction(3))])),
    "root": Function(_nth_root, 2, 2),
    "exp": Function(_exp),
    "ln": _precise(lambda d: d.ln()),
    "log": _precise(lambda d: d.log10()),
    "log10": _precise(lambda d: d.log10()),
    "log2": Function(_log2),
    "sin": _floating(math.sin),
    "cos": _floating(math.cos),
    "tan": _floating(math.tan),
    "asin": _floating(math.asin),
    "acos": _floating(math.acos),
    "atan": _floating(math.atan),
    "atan2": _floating(math.atan2, 2),
    "sinh": _floating(math.sinh),
    "cosh": _floating(math.cosh),
    "tanh": _floating(math.tanh),
    "degrees": _floating(math.degrees),
    "radians": _floating(math.radians),
}

_PI = "3.14159265358979323846264338327950288419716939937510"
_E = "2.71828182845904523536028747135266249775724709369995"
_PHI = "1.61803398874989484820458683436563811772030917980576"
CONSTANTS: dict[str, Value] = {
    "pi": Value(Fraction(_PI), exact=False),
    "π": Value(Fraction(_PI), exact=False),
    "tau": Value(2 * Fraction(_PI), exact=False),
    "e": Value(Fraction(_E), exact=False),
    "phi": Value(Fraction(_PHI), exact=False),
}
