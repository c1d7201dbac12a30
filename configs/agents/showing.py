"""Formats numbers: grouped, with suitable digits, and marked if rounded."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from exact import Value, as_decimal

__all__ = ["SHOWN", "show"]

SHOWN = 12
"""Significant digits of an approximate result."""


def show(value: Value, digits: int = SHOWN) -> str:
    """The number as people write it, with a leading ≈ if it was rounded to `digits`."""
    number = value.number
    if value.exact and (text := _exact_text(number)) is not None:
        return text
    with localcontext() as context:
        context.prec = digits
        rounded = +as_decimal(number)
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
