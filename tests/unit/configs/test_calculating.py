"""Expressions, numbers and units of the quickstart's calculator.

Tables have entries `text => expected` separated by `|`, or `text => position @ message`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

import pytest
from arithmetic import evaluate
from exact import Value
from expression import MAX_LENGTH, Problem
from hypothesis import given, settings
from hypothesis import strategies as st
from quantities import calculate
from showing import show

from tests.examples import examples


def rows(table: str) -> Iterator[tuple[str, str]]:
    for entry in re.split(r" \| |\n", table.strip()):
        given, _, expected = entry.rpartition(" => ")
        yield given.strip(), expected.strip()


def check_problems(table: str, calculation: Callable[[str], object]) -> None:
    """The text of each row is refused at that position with that message."""
    for text, problem in rows(table):
        at, _, message = problem.partition(" @ ")
        with pytest.raises(Problem) as caught:
            calculation(text)
        assert message in caught.value.message, text
        assert caught.value.at == int(at), text


def problem_of(calculation: Callable[[str], object], text: str) -> Problem | None:
    try:
        str(calculation(text))
    except Problem as problem:
        return problem
    return None


def shown(text: str) -> str:
    return show(evaluate(text))


# Expressions ------------------------------------------------------------------------------------

decimals = st.decimals(min_value=0, max_value=10**6, places=3, allow_nan=False).map(str)
numbers = st.integers(0, 10**6).map(str) | decimals


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    infix = st.tuples(inner, st.sampled_from([" + ", "-", "*", " / ", " // "]), inner)
    return st.one_of(
        infix.map("".join),
        st.tuples(inner, inner).map(lambda p: f"{p[0]} % ({p[1]})"),  # `5 % -3` is a percentage
        inner.map("({})".format),
        inner.map("-({})".format),
        st.tuples(inner, st.integers(0, 4)).map(lambda p: f"({p[0]})**{p[1]}"),
        inner.map("abs({})".format),
    )


def python_value(text: str) -> Fraction | None:
    """The value of the expression in Python with fractions; None if it divides by zero."""
    exact = re.sub(r"\d+(?:\.\d+)?", lambda n: f"F('{n[0]}')", text)
    exact = re.sub(r"\*\*F\('(\d)'\)", r"**\1", exact)
    try:
        return Fraction(eval(exact, {"F": Fraction, "abs": abs}))  # only text generated above
    except ZeroDivisionError:
        return None


@settings(max_examples=examples(150))
@given(st.recursive(numbers, combined, max_leaves=8))
def test_expressions_have_the_same_value_as_in_python(text: str) -> None:
    expected = python_value(text)
    if expected is None:
        with pytest.raises(Problem, match="divides by zero"):
            evaluate(text)
        return
    if refused := problem_of(shown, text):
        assert "digits" in refused.message or "characters" in refused.message
        return
    value = evaluate(text)
    if value.exact:
        assert value.number == expected
    else:  # denominators beyond the limit are rounded to 50 digits
        assert abs(value.number - expected) <= abs(expected) / 10**40


@given(st.text(max_size=60) | st.text("0123456789.+-*/%^()! ,ekmsqrtinofCF°√²'\"°", max_size=60))
def test_any_text_has_a_value_or_a_problem_with_a_position_in_it(text: str) -> None:
    for calculation in (shown, calculate):
        problem = problem_of(calculation, text)
        assert problem is None or (0 <= problem.at <= len(text) and problem.message)


@given(st.integers(-(10**39), 10**39), st.decimals(-(10**9), 10**9, places=6, allow_nan=False))
def test_integers_and_decimals_are_shown_exactly(number: int, decimal: Decimal) -> None:
    assert int(show(Value(Fraction(number))).replace(",", "")) == number
    assert Decimal(show(Value(Fraction(decimal))).replace(",", "")) == decimal


OPERATORS = """
2 + 3 * 4^2 => 50 | 2 ** 3 ** 2 => 512 | -2^2 => -4 | 2^-3^2 => 0.001953125 | 0.1 + 0.2 => 0.3
1/3 => ≈ 0.333333333333 | 1/3 * 3 => 1 | 7 // -2 => -4 | -7 % 3 => 2 | 7 mod 4 => 3
10! => 3,628,800 | 3!^2 => 36 | 2 (3 + 4) => 14 | (1 + 1)(2 + 2) => 8 | 2pi => ≈ 6.28318530718
3 x 4 => 12 | 3x4 => 12 | 6 × 7 ÷ 2 => 21 | 8 − 3 => 5 | 5 plus 3 times 2 => 11
10 divided by 4 minus 1 => 1.5 | 3 squared plus 2 cubed => 17 | 2 to the power of 10 => 1024
5² - 4² => 9 | √16 + 2√9 => 10 | the square root of 2 squared => 2 | cube root of 27 => 3
sqrt 16 => 4 | 1,234,567.89 * 2 => 2,469,135.78 | 1_000_000 => 1,000,000 | .5 + 1e3 => 1000.5
1.5e-3 => 0.0015 | 2 + 2 = => 4
"""
PERCENT = """
20% => 0.2 | 20% of 50 => 10 | 100 + 20% => 120 | 100 - 20% => 80 | 100 * 20% => 20
50% + 25% => 0.625 | 20% - 5 => -4.8 | 7 % 3 => 1 | 7 % (2 + 1) => 1
"""
CALLS = """
sqrt(16) => 4 | sqrt(2) => ≈ 1.41421356237 | sqrt(1/4) => 0.5 | cbrt(-8) => -2 | root(32, 5) => 2
root(-32, 5) => -2 | 8^(1/3) => 2 | (8/27)^(2/3) => ≈ 0.444444444444 | 2^0.5 => ≈ 1.41421356237
0^0 => 1 | 1.0005^3650 => ≈ 6.19996658194 | exp(0) => 1 | ln(e) => ≈ 1 | log(1000) => 3
log2(1/8) => -3 | log2(10) => ≈ 3.32192809489 | sin(pi) => ≈ 0 | cos(0) => ≈ 1
degrees(pi) => ≈ 180 | atan2(1, 1) => ≈ 0.785398163397 | round(2.5) => 3
round(-1.005, 2) => -1.01 | round(1234, -2) => 1200 | floor(-1.5) + ceil(1.2) => 0
max(1,234) => 234 | max((1,234), 5) => 1234 | mean(1, 2, 6) => 3 | median(5, 1, 3) => 3
median(1, 2) => 1.5 | gcd(12, 18) + lcm(4, 6) => 18 | sum(1, 2, 3) - min(4, 5) => 2 | abs(-3) => 3
"""
NO_NUMBER = """
9**9**9 => 1 @ about 369,693,100 digits | 9^9^9^9 => 3 @ digits | 2^1e300 => 1 @ digits
0.1^2000 => 3 @ digits | 451! => 3 @ digits | (9!)! => 4 @ digits
1e999 * 1e999 * 1e10 => 6 @ digits | 1e1001 => 0 @ exponent | 1/0 => 1 @ divides by zero
0^-1 => 1 @ divides by zero | 5 % (2 - 2) => 2 @ divides by zero | 1 // 0 => 2 @ divides by zero
2 + * 3 => 4 @ did not expect '*' | 2 + => 3 @ missing |  => 0 @ missing
(1 + 2 => 0 @ never closed | 1 + 2) => 5 @ did not expect ')' | 2 3 => 2 @ did not expect '3'
1,23 => 1 @ comma | 3 $ 4 => 2 @ '$' means nothing | foo(1) => 0 @ no function 'foo'
bar + 1 => 0 @ do not know 'bar' | sqrt(-1) => 0 @ not real | (-8)^(1/3) => 4 @ no real power
(-1)! => 4 @ factorial | 2.5! => 3 @ factorial | ln(0) => 0 @ positive
asin(2) => 0 @ not defined | tan(1e400) => 0 @ not defined | exp(1e6) => 0 @ out of range
gcd(1.5, 2) => 0 @ whole numbers | root(2, 0) => 0 @ degree | sqrt() => 0 @ one argument
round(1, 2, 3) => 0 @ 1 to 2 arguments | max() => 0 @ 1 or more | round(1, 1000) => 0 @ digits
3 to 4 => 2 @ no unit
"""


def test_operators_percentages_and_functions_are_calculated() -> None:
    for text, expected in [*rows(OPERATORS), *rows(PERCENT), *rows(CALLS)]:
        assert shown(text) == expected, text


def test_an_invalid_expression_is_refused_with_its_position_and_reason() -> None:
    check_problems(NO_NUMBER, shown)
    long, deep = "1+" * 300 + "1", "(" * 60 + "1" + ")" * 60
    for text, at, message in ((long, MAX_LENGTH, "characters"), (deep, 50, "nested")):
        with pytest.raises(Problem, match=message) as caught:
            evaluate(text)
        assert caught.value.at == at
    with pytest.raises(Problem) as caught:
        evaluate("2 + * 3")
    assert caught.value.pointed("2 + * 3") == "2 + * 3\n    ^ I did not expect '*' here"


# Units ------------------------------------------------------------------------------------------

CONVERSIONS = """
5 miles to km => 8.04672 km | 5 miles in kilometres => 8.04672 kilometres
1/2 mile to m => 804.672 m | 12 in to cm => 30.48 cm | 5 ft 11 in in cm => 180.34 cm
5'11" in cm => 180.34 cm | 1 parsec in ly => ≈ 3.2615638 ly
3 light years in km => 28,382,191,417,742.4 km | 5 µm -> nm => 5000 nm
150 lbs in kg => 68.0388555 kg | 10 stone in pounds => 140 pounds
2 troy ounces in g => 62.2069536 g | 1 tonne in kg => 1000 kg
3 h 20 min in minutes => 200 minutes | 3 hours and 20 minutes in seconds => 12,000 seconds
1 year in days => 365.2425 days | 7 days in weeks => 1 weeks | 72 F in C => ≈ 22.222222 °C
72 f in c => ≈ 22.222222 °C | -40 °F in °C => -40 °C | 100 degrees celsius in fahrenheit => 212 °F
0 K in °F => -459.67 °F | 300 K in C => 26.85 °C | 1 acre in m^2 => 4046.8564224 m²
1 acre in square feet => 43,560 square feet | 2 ha in m2 => 20,000 m2
2 cubic metres in litres => 2000 litres | 1 gallon in L => 3.785411784 L
1 imperial pint in ml => 568.26125 mL | 1 cup in tablespoons => 16 tablespoons
60 miles per hour in km/h => 96.56064 km/h | 100 m / 9.58 s in km/h => ≈ 37.578288 km/h
3 kt * 2 h in nautical miles => 6 nautical miles | 1 GiB in MB => 1073.741824 MB
100 Mbps in MB/s => 12.5 MB/s | 10 GB / 50 Mbps in minutes => ≈ 26.666667 minutes
1 kWh in MJ => 3.6 MJ | 1 kilowatt hour in joules => 3,600,000 joules | 1000 kcal in kJ => 4184 kJ
1 hp in W => 745.69987158227022 W | 1 atm in kPa => 101.325 kPa
5 kg * 9.81 m/s^2 in N => 49.05 N | 10 newton metres in J => 10 J | 1 turn in deg => 360 deg
778.5 million km in au => ≈ 5.2039511 au | 3 dozen + 4 => ≈ 3.3333333 dozen
"""
QUANTITIES = """
2 + 3 => 5 | 5 km + 300 m => 5.3 km | 300 m + 5 km => 5300 m | 2 h 30 min * 2 => 5 h
100 km + 10% => 110 km | 10 km / 2 m => 5000 | 10 km // 3 km => 3 | 10 km % 3 km => 1 km
3 m * 4 m => 12 m·m | (3 m)^2 => 9 m² | (3 m)^4 => 81 m^4 | 10 km / 2 h => 5 km/h
1 / 2 s => 0.5 1/s | 6 J / (2 m/s) => 3 J/(m/s) | (2 km)^0 => 1 | 2 x 3 km => 6 km
max(3 km, 200 m) => 3 km | round(5.678 km, 1) => 5.7 km | mean(1 h, 2 h) => 1.5 h
abs(3 kg - 5 kg) => 2 kg | sin(90 deg) => ≈ 1 | cos(60°) => ≈ 0.5 | -5 km => -5 km | 3! km => 6 km
pi * (3 m)^2 => ≈ 28.274334 m²
"""
NO_QUANTITY = """
5 km + 3 kg => 5 @ a mass cannot be added to a length
5 km - 3 => 5 @ a plain number cannot be subtracted from a length
5 km in kg => 5 @ a length cannot be given in kg, a unit of mass
5 in cm => 2 @ a plain number cannot be given in cm, a unit of length
5 km in 3 => 5 @ a unit was expected | 5 km in => 7 @ missing
20 C + 5 C => 5 @ can be converted, not calculated with
max(20 C, 5 C) => 0 @ can be converted, not calculated with
2 ^ (3 m) => 2 @ an exponent is a plain number, not a length | (3 m) ^ 0.5 => 6 @ whole powers
(3 m)! => 5 @ ! needs a plain number | sqrt(3 m) => 0 @ sqrt needs a plain number, not a length
max(3 m, 3 s) => 0 @ arguments of one kind | 1 mlie => 2 @ did you mean mile?
5 mb in kB => 2 @ did you mean MB or Mb? | 3 wugs => 2 @ do not know 'wugs'
5 km / 0 h => 5 @ divides by zero
"""


def test_quantities_are_calculated_and_converted_with_units() -> None:
    for text, expected in [*rows(CONVERSIONS), *rows(QUANTITIES)]:
        assert str(calculate(text)) == expected, text
    check_problems(NO_QUANTITY, calculate)


LENGTHS = st.sampled_from(["m", "km", "mile", "ft", "inch", "ly", "nmi", "µm", "light years"])
SCALES = st.sampled_from(["°C", "°F", "K", "°R"])
values = st.fractions(-(10**6), 10**6, max_denominator=1000)


def exact(text: str) -> Fraction:
    return calculate(text).shown.number


@given(values, LENGTHS, LENGTHS, SCALES, SCALES, SCALES)
def test_conversions_are_exact_and_independent_of_intermediate_units(
    number: Fraction, unit: str, other: str, a: str, b: str, c: str
) -> None:
    there = exact(f"({number}) {unit} in {other}")
    assert exact(f"({there}) {other} in {unit}") == number
    between = exact(f"({number}) {a} in {b}")
    assert exact(f"({between}) {b} in {c}") == exact(f"({number}) {a} in {c}")
