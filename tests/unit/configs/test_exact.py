"""Powers, roots and what numbers look like."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from exact import MAX_DIGITS, Value, factorial, power, sized
from functions import CONSTANTS, FUNCTIONS
from hypothesis import given
from hypothesis import strategies as st
from showing import show
from tokens import Problem

bases = st.fractions(-1000, 1000, max_denominator=100)


def raised(base: Fraction, exponent: Fraction | int) -> Value:
    return power(Value(base), Value(Fraction(exponent)), 0)


@given(bases.filter(bool), st.integers(-20, 20))
def test_whole_powers_are_those_of_fractions(base: Fraction, exponent: int) -> None:
    assert raised(base, exponent) == Value(base**exponent)


@given(st.fractions(0, 1000, max_denominator=100), st.integers(2, 9))
def test_the_root_of_a_power_is_exact(base: Fraction, n: int) -> None:
    assert raised(base**n, Fraction(1, n)) == Value(base)


@given(st.fractions(Fraction(1, 100), 1000, max_denominator=100), st.integers(2, 9))
def test_other_roots_are_right_to_many_digits(number: Fraction, n: int) -> None:
    root = raised(number, Fraction(1, n))
    assert abs(root.number**n - number) < Fraction(1, 10**40)


@given(st.integers(2, 10**6), st.integers(1, 10**9))
def test_no_power_has_more_digits_than_allowed(base: int, exponent: int) -> None:
    too_long = exponent * math.log10(base) > MAX_DIGITS + 1
    if too_long:
        with pytest.raises(Problem, match="digits"):
            raised(Fraction(base), exponent)
    else:
        assert raised(Fraction(base), exponent).number > 0


def test_rounding_is_remembered() -> None:
    rounded = Value(Fraction(2), exact=False)
    assert not power(rounded, Value(Fraction(3)), 0).exact
    assert not factorial(Value(Fraction(3), exact=False), 0).exact


def test_a_denominator_that_grows_without_bounds_is_rounded() -> None:
    value = sized(Value(Fraction(1, 3**20000) + 1), 0)
    assert not value.exact
    assert abs(value.number - 1) < Fraction(1, 10**40)


@given(st.integers(0, 450))
def test_factorials(n: int) -> None:
    assert factorial(Value(Fraction(n)), 0) == Value(Fraction(math.factorial(n)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("pi", math.pi), ("e", math.e), ("tau", math.tau), ("phi", (1 + math.sqrt(5)) / 2)],
)
def test_constants_agree_with_those_of_the_machine(name: str, value: float) -> None:
    assert float(CONSTANTS[name].number) == value
    assert not CONSTANTS[name].exact


@given(st.floats(-50, 50))
def test_angles_agree_with_those_of_the_machine(x: float) -> None:
    argument = [Value(Fraction(x))]
    for name, compute in (("sin", math.sin), ("cos", math.cos), ("tanh", math.tanh)):
        assert abs(float(FUNCTIONS[name].compute(argument).number) - compute(x)) < 1e-12


@given(st.integers(-900, 900))
def test_logarithms_of_powers_are_exact(n: int) -> None:
    assert FUNCTIONS["log2"].compute([Value(Fraction(2) ** n)]) == Value(Fraction(n))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(9999), "9999"),
        (Fraction(10000), "10,000"),
        (Fraction(-1234567, 100), "-12,345.67"),
        (Fraction(1, 8), "0.125"),
        (Fraction(2, 3), "≈ 0.666666666667"),
        (Fraction(20000, 3), "≈ 6666.66666667"),
        (Fraction(1, 10**20), "1e-20"),
        (Fraction(1, 3 * 10**9), "≈ 3.33333333333e-10"),
        (Fraction(10) ** 40, "1e40"),
        (Fraction(10) ** 40 + 1, "≈ 1e40"),
        (Fraction(-(10**30)) / 7, "≈ -1.42857142857e29"),
    ],
)
def test_a_number_is_shown_as_people_write_it(number: Fraction, text: str) -> None:
    assert show(Value(number)) == text


def test_a_rounded_number_is_marked_even_if_it_looks_whole() -> None:
    assert show(Value(Fraction(3), exact=False)) == "≈ 3"
    assert show(Value(Fraction(2, 3)), 3) == "≈ 0.667"
