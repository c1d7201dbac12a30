"""Exact arithmetic on fractions, with limits, and the evaluation of expression trees.

Whatever can be exact is exact (0.1 + 0.2 is 0.3); roots, logarithms and angles carry 50 digits or a
float's 15 and say that they are approximate. Nothing here runs code: `9**9**9` is refused
before it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Protocol, TypeVar

from expression import Binary, Call, Convert, Expression, Name, Number, Problem, Unary, parse

__all__ = ["SHOWN", "Algebra", "Numbers", "Value", "evaluate", "fold", "show"]

MAX_DIGITS = 1000
DIGITS = 50
"""Of approximate results, before they are shown."""
SHOWN = 12
"""Significant digits of an approximate result."""
_MAX_BITS = int(MAX_DIGITS * math.log2(10)) + 1
V = TypeVar("V")


@dataclass(frozen=True)
class Value:
    """A number. `exact` is False once rounding took part in it."""

    number: Fraction
    exact: bool = True


class Algebra(Protocol[V]):
    """What an evaluator knows of its values. Each method raises Problem with the place."""

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
    """The value of an expression without units. Raises Problem with the place of what is wrong."""
    return fold(parse(text), Numbers())


class Numbers:
    """Arithmetic on plain numbers."""

    def number(self, value: Fraction, at: int) -> Value:
        return _sized(Value(value), at)

    def name(self, text: str, at: int) -> Value:
        if text.lower() not in _CONSTANTS:
            raise Problem(f"I do not know {text!r}", at)
        return _CONSTANTS[text.lower()]

    def unary(self, op: str, operand: Value, at: int) -> Value:
        match op:
            case "-":
                return Value(-operand.number, operand.exact)
            case "+":
                return operand
            case "%":
                return Value(operand.number / 100, operand.exact)
            case _:
                return _factorial(operand, at)

    def binary(self, op: str, left: Value, right: Value, at: int) -> Value:
        if op == "^":
            return _sized(_power(left, right, at), at)
        if op == "and":
            raise Problem("two numbers side by side need an operator between them", at)
        if right.number == 0 and op in ("/", "//", "%"):
            raise Problem("this divides by zero", at)
        number = _BINARY[op](left.number, right.number)
        return _sized(Value(Fraction(number), left.exact and right.exact), at)

    def call(self, function: str, arguments: Sequence[Value], at: int) -> Value:
        known = _FUNCTIONS.get(function)
        if known is None:
            raise Problem(f"I know no function {function!r}", at)
        if not known.least <= len(arguments) <= known.most:
            raise Problem(f"{function} takes {known.arity}", at)
        try:
            return _sized(known.compute(list(arguments)), at)
        except _OutOfDomain as error:
            raise Problem(f"{function} {error}", at) from error

    def convert(self, value: Value, target: Value, at: int) -> Value:
        raise Problem("there is no unit to convert to", at)


class _OutOfDomain(Exception):
    """The function is not defined for the argument; the text goes on after the function's name."""


_BINARY: dict[str, Callable[[Fraction, Fraction], Fraction | int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def _sized(value: Value, at: int) -> Value:
    """`value` unless it is too large to go on with."""
    number = value.number
    if abs(number.numerator).bit_length() - number.denominator.bit_length() > _MAX_BITS:
        raise Problem(f"this has more than {MAX_DIGITS} digits", at)
    if number.denominator.bit_length() > 4 * _MAX_BITS:
        return Value(_rounded(number), exact=False)
    return value


def _rounded(number: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = DIGITS
        return Fraction(Decimal(number.numerator) / Decimal(number.denominator))


def _factorial(value: Value, at: int) -> Value:
    number = value.number
    if number.denominator != 1 or number < 0:
        raise Problem("a factorial needs a whole number from 0", at)
    if number > 450:  # 450! has 1,001 digits
        raise Problem(f"this has more than {MAX_DIGITS} digits", at)
    return Value(Fraction(math.factorial(int(number))), value.exact)


def _power(base: Value, exponent: Value, at: int) -> Value:
    exact = base.exact and exponent.exact
    b, e = base.number, exponent.number
    if b == 0 and e < 0:
        raise Problem("this divides by zero", at)
    if b == 0:
        return Value(Fraction(e == 0), exact)
    _refuse_large_power(b, e, at)
    below = max(abs(b.numerator), b.denominator).bit_length() * abs(e)
    if e.denominator == 1 and below <= 4 * _MAX_BITS:
        return Value(b ** int(e), exact)
    if b < 0 and e.denominator != 1:
        raise Problem("a negative number has no real power of this kind", at)
    root = _exact_root(b, e.denominator)
    if root is not None and below <= 4 * _MAX_BITS:
        return Value(root ** int(e.numerator), exact)
    with localcontext() as context:
        context.prec = DIGITS
        return Value(Fraction(_decimal(b) ** _decimal(e)), exact=False)


def _refuse_large_power(base: Fraction, exponent: Fraction, at: int) -> None:
    """Refuses a power by the size of its result, before it is computed."""
    digits = float(min(abs(exponent), Fraction(10) ** 300)) * abs(_log10(base))
    if digits > MAX_DIGITS + 1:
        size = f"{digits:,.0f}" if digits < 1e15 else f"{digits:.0e}"
        raise Problem(f"this has about {size} digits, more than {MAX_DIGITS:,}", at)


def _log10(number: Fraction) -> float:
    return math.log10(abs(number.numerator)) - math.log10(number.denominator)


def _exact_root(number: Fraction, n: int) -> Fraction | None:
    """The nth root if it is rational."""
    if not 2 <= n <= 64:
        return None
    top, bottom = _whole_root(number.numerator, n), _whole_root(number.denominator, n)
    return None if top is None or bottom is None else Fraction(top, bottom)


def _whole_root(number: int, n: int) -> int | None:
    if n == 2:
        root = math.isqrt(number)
        return root if root * root == number else None
    low, high = 0, 1 << (number.bit_length() // n + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**n <= number else (low, middle - 1)
    return low if low**n == number else None


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


# Functions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Function:
    compute: Callable[[list[Value]], Value]
    least: int = 1
    most: int = 1

    @property
    def arity(self) -> str:
        if self.least == self.most:
            return "one argument" if self.least == 1 else f"{self.least} arguments"
        most = f" to {self.most}" if self.most < 100 else " or more"
        return f"{self.least}{most} arguments"


def _exactly(compute: Callable[..., Fraction | int], least: int = 1, most: int = 1) -> _Function:
    """A function whose result is as exact as its arguments."""

    def run(values: list[Value]) -> Value:
        result = compute(*(v.number for v in values))
        return Value(Fraction(result), all(v.exact for v in values))

    return _Function(run, least, most)


def _floating(compute: Callable[..., float], arguments: int = 1) -> _Function:
    """A function of the math module: 15 digits."""

    def run(values: list[Value]) -> Value:
        try:
            result = compute(*(float(v.number) for v in values))
        except (ValueError, OverflowError) as error:
            raise _OutOfDomain("is not defined there") from error
        # a float keeps about 15 digits: what is beyond them is noise (sin(pi) is 0)
        return Value(Fraction(Decimal(f"{result:.15f}")), exact=False)

    return _Function(run, arguments, arguments)


def _precise(compute: Callable[[Decimal], Decimal]) -> _Function:
    """A logarithm with 50 digits."""

    def run(values: list[Value]) -> Value:
        if values[0].number <= 0:
            raise _OutOfDomain("is defined for positive numbers only")
        with localcontext() as context:
            context.prec = DIGITS
            result = Fraction(compute(_decimal(values[0].number)))
        return Value(result, exact=values[0].exact and result.denominator == 1)

    return _Function(run)


def _sqrt(values: list[Value]) -> Value:
    return _nth_root([values[0], Value(Fraction(2))])


def _nth_root(values: list[Value]) -> Value:
    number, degree = values[0], values[1].number
    if degree.denominator != 1 or not 1 <= degree <= 64:
        raise _OutOfDomain("needs a degree from 1 to 64")
    if number.number < 0:
        if degree % 2 == 0:
            raise _OutOfDomain("of a negative number is not real")
        mirrored = _nth_root([Value(-number.number, number.exact), values[1]])
        return Value(-mirrored.number, mirrored.exact)
    return _power(number, Value(1 / degree), 0)


def _exp(values: list[Value]) -> Value:
    if abs(values[0].number) > 2000:
        raise _OutOfDomain("of that is out of range")
    with localcontext() as context:
        context.prec = DIGITS
        return Value(Fraction(_decimal(values[0].number).exp()), values[0].number == 0)


def _log2(number: Decimal) -> Decimal:
    exponent = number.logb()
    if number > 0 and abs(exponent) < MAX_DIGITS:
        fraction = Fraction(number)
        for power in (
            fraction.numerator.bit_length() - 1,
            -(fraction.denominator.bit_length() - 1),
        ):
            if fraction == Fraction(2) ** power:
                return Decimal(power)
    return number.ln() / Decimal(2).ln()


def _round(number: Fraction, digits: Fraction = Fraction(0)) -> Fraction:
    """Half away from zero, as people round."""
    if digits.denominator != 1 or abs(digits) > 100:
        raise _OutOfDomain("needs a whole number of digits")
    scale = Fraction(10) ** int(digits)
    scaled = abs(number) * scale
    rounded = math.floor(scaled + Fraction(1, 2)) / scale
    return rounded if number >= 0 else -rounded


def _whole(*numbers: Fraction) -> list[int]:
    if any(n.denominator != 1 for n in numbers):
        raise _OutOfDomain("needs whole numbers")
    return [int(n) for n in numbers]


def _mean(*numbers: Fraction) -> Fraction:
    return sum(numbers, Fraction(0)) / len(numbers)


def _median(*numbers: Fraction) -> Fraction:
    ordered, half = sorted(numbers), len(numbers) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


_MANY = 1000
_FUNCTIONS: dict[str, _Function] = {
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
    "sqrt": _Function(_sqrt),
    "cbrt": _Function(lambda v: _nth_root([v[0], Value(Fraction(3))])),
    "root": _Function(_nth_root, 2, 2),
    "exp": _Function(_exp),
    "ln": _precise(lambda d: d.ln()),
    "log": _precise(lambda d: d.log10()),
    "log10": _precise(lambda d: d.log10()),
    "log2": _precise(_log2),
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
_CONSTANTS: dict[str, Value] = {
    "pi": Value(Fraction(_PI), exact=False),
    "π": Value(Fraction(_PI), exact=False),
    "tau": Value(2 * Fraction(_PI), exact=False),
    "e": Value(Fraction(_E), exact=False),
    "phi": Value(Fraction(_PHI), exact=False),
}


# Showing --------------------------------------------------------------------------------------


def show(value: Value, digits: int = SHOWN) -> str:
    """The number as people write it; with ≈ in front if it was rounded to `digits`."""
    number = value.number
    if value.exact and (text := _exact_text(number)) is not None:
        return text
    with localcontext() as context:
        context.prec = digits
        rounded = +_decimal(number)
    exact = value.exact and Fraction(rounded) == number
    return ("" if exact else "≈ ") + _decimal_text(rounded)


def _exact_text(number: Fraction) -> str | None:
    """All digits, if there are not too many of them."""
    if number.denominator == 1:
        return _grouped(str(number.numerator)) if abs(number) < 10**40 else None
    rest, twos, fives = number.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > 15:
        return None
    scaled = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    if len(scaled) > 20:
        return None
    sign = "-" if number < 0 else ""
    return _grouped(f"{sign}{scaled[:-places]}.{scaled[-places:]}")


def _decimal_text(number: Decimal) -> str:
    if number == 0:
        return "0"
    if -7 <= number.adjusted() < 15:
        text = f"{number:f}"
        return _grouped(text.rstrip("0").rstrip(".") if "." in text else text)
    mantissa, _, exponent = f"{number:e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}"


def _grouped(text: str) -> str:
    """Commas between thousands, from five digits on."""
    whole, point, places = text.partition(".")
    digits = whole.lstrip("-")
    if len(digits) < 5:
        return text
    return ("-" if whole.startswith("-") else "") + f"{int(digits):,}" + point + places
