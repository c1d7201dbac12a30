"""Arithmetic on quantities: numbers with units, conversion, and formatting of the result.

The calculator answers questions with `calculate("5 km + 300 m in miles")`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import units
from arithmetic import Numbers, fold
from exact import Value
from expression import Problem, parse
from showing import SHOWN, show
from units import PLAIN, Unit

__all__ = ["Quantities", "Quantity", "calculate"]

SHOWN_WITH_UNIT = 8
"""Significant digits of an approximate quantity: more than most things can be measured."""
_ONE = Unit("", Fraction(1), PLAIN)


@dataclass(frozen=True)
class Quantity:
    """`value` in base units; `unit` is the one to show it in."""

    value: Value
    unit: Unit = _ONE
    bare: bool = False
    """A unit without a number, as the target of a conversion."""

    @property
    def on_a_scale(self) -> bool:
        """A temperature in °C or °F: a point on a scale, which cannot be added or multiplied."""
        return self.unit.offset != 0

    @property
    def shown(self) -> Value:
        """The number in front of the unit."""
        number = (self.value.number - self.unit.offset) / self.unit.factor
        return Value(number, self.value.exact)

    def __str__(self) -> str:
        digits = SHOWN_WITH_UNIT if self.unit.name else SHOWN
        return f"{show(self.shown, digits)} {self.unit.name}".rstrip()


def calculate(text: str) -> Quantity:
    """The value of an expression with units. Raises Problem with the place of the error."""
    return fold(parse(text), Quantities())


class Quantities:
    """The algebra of quantities; plain numbers are left to `Numbers`."""

    def __init__(self) -> None:
        self._numbers = Numbers()

    def number(self, value: Fraction, at: int) -> Quantity:
        return Quantity(self._numbers.number(value, at))

    def name(self, text: str, at: int) -> Quantity:
        unit = units.find(text)
        if text in _CONSTANTS or unit is None:
            return self._constants(text, at)
        if len(text) > 3 and not unit.offset:
            unit = replace(unit, name=text)  # show minutes if asked for minutes, not min
        return Quantity(Value(unit.factor + unit.offset), unit, bare=True)

    def _constants(self, text: str, at: int) -> Quantity:
        try:
            return Quantity(self._numbers.name(text, at))
        except Problem as problem:
            near = units.nearest(text)
            hint = f"; did you mean {near}?" if near else ""
            raise Problem(problem.message + hint, at) from problem

    def unary(self, op: str, operand: Quantity, at: int) -> Quantity:
        if op in ("%", "!") and operand.unit.dimension:
            raise Problem(f"{op} needs a plain number, not {_kind(operand)}", at)
        if op == "-" and operand.on_a_scale:
            return _on_scale(Value(-operand.shown.number, operand.value.exact), operand.unit)
        return replace(operand, value=self._numbers.unary(op, operand.value, at), bare=False)

    def binary(self, op: str, left: Quantity, right: Quantity, at: int) -> Quantity:
        if op == "*" and right.bare and right.on_a_scale and left.unit == _ONE:
            return _on_scale(left.value, right.unit)
        _refuse_scales(at, left, right)
        match op:
            case "+" | "-" | "%" | "and":
                return self._alike("+" if op == "and" else op, left, right, at)
            case "^":
                return self._power(left, right, at)
            case "//":
                whole = self._alike("//", left, right, at)
                return Quantity(whole.value)
            case _:
                return self._scaled(op, left, right, at)

    def _alike(self, op: str, left: Quantity, right: Quantity, at: int) -> Quantity:
        if left.unit.dimension != right.unit.dimension:
            verb = {"+": "added to", "-": "subtracted from"}.get(op, "compared with")
            raise Problem(f"{_kind(right)} cannot be {verb} {_kind(left)}", at)
        value = self._numbers.binary(op, left.value, right.value, at)
        return Quantity(value, left.unit if left.unit.name else right.unit)

    def _scaled(self, op: str, left: Quantity, right: Quantity, at: int) -> Quantity:
        value = self._numbers.binary(op, left.value, right.value, at)
        power = Fraction(1 if op == "*" else -1)
        dimension = units.multiply(left.unit.dimension, right.unit.dimension, power)
        factor = left.unit.factor * right.unit.factor**power
        unit = Unit(_product_name(op, left.unit, right.unit), Fraction(factor), dimension)
        if not dimension and left.unit.name and right.unit.name:
            unit = _ONE  # 10 km / 2 m is 5000, not 5 km/m
        return Quantity(value, unit, bare=left.bare and right.bare)

    def _power(self, base: Quantity, exponent: Quantity, at: int) -> Quantity:
        if exponent.unit.dimension:
            raise Problem(f"an exponent is a plain number, not {_kind(exponent)}", at)
        value = self._numbers.binary("^", base.value, exponent.value, at)
        power = exponent.value.number
        if not base.unit.dimension:
            return Quantity(value, _ONE)
        if power.denominator != 1 or abs(power) > 9:
            raise Problem("a unit takes whole powers up to 9", at)
        dimension = units.multiply(PLAIN, base.unit.dimension, power)
        factor = base.unit.factor ** int(power)
        unit = Unit(_power_name(base.unit.name, int(power)), Fraction(factor), dimension)
        return Quantity(value, unit if dimension else _ONE, bare=base.bare)

    def call(self, function: str, arguments: Sequence[Quantity], at: int) -> Quantity:
        _refuse_scales(at, *arguments)
        first = arguments[0].unit if arguments else _ONE
        alike, rest = arguments[: _alike(function)], arguments[len(arguments[: _alike(function)]) :]
        if any(a.unit.dimension != first.dimension for a in alike):
            raise Problem(f"{function} needs arguments of one kind", at)
        if function in ("sin", "cos", "tan") and first.dimension == units.ANGLE:
            radian = units.find("rad") or _ONE
            return self.call(function, [Quantity(replace(a, unit=radian).shown) for a in alike], at)
        if first.dimension and function not in _KEEP_UNIT:
            raise Problem(f"{function} needs a plain number, not {_kind(arguments[0])}", at)
        numbers = [replace(a, unit=first).shown for a in alike] + [a.value for a in rest]
        result = self._numbers.call(function, numbers, at)
        return Quantity(Value(result.number * first.factor, result.exact), first)

    def convert(self, value: Quantity, target: Quantity, at: int) -> Quantity:
        if not target.bare:
            raise Problem("a unit was expected after this", at)
        if value.unit.dimension != target.unit.dimension:
            raise Problem(f"{_kind(value)} cannot be given in {_unit_kind(target)}", at)
        return Quantity(value.value, target.unit)


_KEEP_UNIT = {"abs", "round", "floor", "ceil", "min", "max", "sum", "mean", "average", "median"}
_CONSTANTS = {"pi", "e", "tau", "phi", "π"}


def _alike(function: str) -> int | None:
    """How many of the arguments must be of one kind: the second of round is a plain number."""
    return 1 if function == "round" else None


def _on_scale(number: Value, unit: Unit) -> Quantity:
    return Quantity(Value(number.number * unit.factor + unit.offset, number.exact), unit)


def _refuse_scales(at: int, *quantities: Quantity) -> None:
    for quantity in quantities:
        if quantity.on_a_scale:
            name = quantity.unit.name
            raise Problem(f"a temperature in {name} can be converted, not calculated with", at)


def _kind(quantity: Quantity) -> str:
    return units.dimension_name(quantity.unit.dimension)


def _unit_kind(quantity: Quantity) -> str:
    kind = units.dimension_name(quantity.unit.dimension).removeprefix("an ").removeprefix("a ")
    return f"{quantity.unit.name}, a unit of {kind}"


def _product_name(op: str, left: Unit, right: Unit) -> str:
    if not right.name:
        return left.name
    if op == "*":
        return f"{left.name}·{right.name}" if left.name else right.name
    below = f"({right.name})" if re.search(r"[·/]", right.name) else right.name
    return f"{left.name or '1'}/{below}"


def _power_name(name: str, power: int) -> str:
    plain = f"({name})" if re.search(r"[·/]", name) else name
    return plain + {1: "", 2: "²", 3: "³"}.get(power, f"^{power}")
