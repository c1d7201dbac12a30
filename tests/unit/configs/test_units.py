from __future__ import annotations

from fractions import Fraction

import pytest
import units
from hypothesis import given
from hypothesis import strategies as st
from units import LENGTH, MASS, PLAIN, SPEED, TIME, dimension_name, divide, find, multiply


@pytest.mark.parametrize(
    ("words", "factor", "kind"),
    [
        ("km", 1000, "a length"),
        ("Kilometres", 1000, "a length"),
        ("feet", Fraction("0.3048"), "a length"),
        ("light years", 9460730472580800, "a length"),
        ("square metres", 1, "an area"),
        ("sq ft", Fraction("0.09290304"), "an area"),
        ("cubic cm", Fraction(1, 10**6), "a volume"),
        ("m2", 1, "an area"),
        ("cm3", Fraction(1, 10**6), "a volume"),
        ("fluid ounces", Fraction("0.0000295735295625"), "a volume"),
        ("kWh", 3600000, "an energy"),
        ("newton metres", 1, "an energy"),
        ("MiB", 8 * 1024**2, "an amount of data"),
        ("Mbps", 10**6, "a data rate"),
        ("million km", 10**9, "a length"),
        ("knots", Fraction(463, 900), "a speed"),
        ("days", 86400, "a time"),
        ("min", 60, "a time"),
        ("dozen", 12, "a plain number"),
    ],
)
def test_a_unit_is_found_by_symbol_or_name(words: str, factor: Fraction, kind: str) -> None:
    unit = find(words)
    assert unit is not None
    assert (unit.factor, dimension_name(unit.dimension)) == (factor, kind)


@pytest.mark.parametrize("words", ["", "wug", "square", "cubic wug", "km wug", "mb", "M", "2"])
def test_what_is_no_unit_or_not_only_one_is_not_found(words: str) -> None:
    assert find(words) is None or words == "M"


def test_prefixes_multiply() -> None:
    for prefix, scale in (("k", 3), ("M", 6), ("m", -3), ("µ", -6), ("n", -9)):
        for symbol in ("m", "s", "J", "W", "Pa", "A", "V"):
            base, prefixed = find(symbol), find(prefix + symbol)
            assert base is not None
            assert prefixed is not None
            assert prefixed.factor == base.factor * Fraction(10) ** scale
            assert prefixed.dimension == base.dimension


dimensions = st.sampled_from([PLAIN, LENGTH, MASS, TIME, SPEED, units.ENERGY, units.DATA])


@given(dimensions, dimensions)
def test_dimensions_are_a_group(a: units.Dimension, b: units.Dimension) -> None:
    assert multiply(a, b) == multiply(b, a)
    assert divide(multiply(a, b), b) == a
    assert divide(a, a) == PLAIN


def test_a_dimension_without_a_name_is_given_by_its_powers() -> None:
    assert dimension_name(multiply(MASS, TIME)) == "mass^1 time^1"


@given(st.text(max_size=20))
def test_any_words_can_be_looked_up(words: str) -> None:
    unit = find(words)
    assert unit is None or unit.factor > 0
    units.nearest(words)
