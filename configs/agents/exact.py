"""Exact numbers with limits: a result that would be too large is refused before it is computed.

Numbers are fractions if possible; irrational roots and powers have 50 digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from tokens import Problem

__all__ = ["DIGITS", "MAX_DIGITS", "Value", "as_decimal", "factorial", "power", "sized"]

MAX_DIGITS = 1000
"""Digits of a result, before and after the decimal point."""
DIGITS = 50
"""Digits of approximate results, before they are rounded for display."""
_MAX_BITS = int(MAX_DIGITS * math.log2(10)) + 1


@dataclass(frozen=True)
class Value:
    """A number. `exact` is False if it was rounded."""

    number: Fraction
    exact: bool = True


def sized(value: Value, at: int) -> Value:
    """`value`, unless it is too large to continue with."""
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


def factorial(value: Value, at: int) -> Value:
    number = value.number
    if number.denominator != 1 or number < 0:
        raise Problem("a factorial needs a whole number from 0", at)
    if number > 450:  # 450! has 1,001 digits
        raise Problem(f"this has more than {MAX_DIGITS} digits", at)
    return Value(Fraction(math.factorial(int(number))), value.exact)


def power(base: Value, exponent: Value, at: int) -> Value:
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
        return Value(Fraction(as_decimal(b) ** as_decimal(e)), exact=False)


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


def as_decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)
