from __future__ import annotations

from fractions import Fraction

import pytest
import units
from expression import Problem
from hypothesis import given
from hypothesis import strategies as st
from quantities import calculate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 miles to km", "8.04672 km"),
        ("5 miles in kilometres", "8.04672 kilometres"),
        ("1/2 mile to m", "804.672 m"),
        ("12 in to cm", "30.48 cm"),
        ("5 ft 11 in in cm", "180.34 cm"),
        ("5'11\" in cm", "180.34 cm"),
        ("1 parsec in ly", "≈ 3.2615638 ly"),
        ("3 light years in km", "28,382,191,417,742.4 km"),
        ("5 µm -> nm", "5000 nm"),
        ("150 lbs in kg", "68.0388555 kg"),
        ("10 stone in pounds", "140 pounds"),
        ("2 troy ounces in g", "62.2069536 g"),
        ("1 tonne in kg", "1000 kg"),
        ("3 h 20 min in minutes", "200 minutes"),
        ("3 hours and 20 minutes in seconds", "12,000 seconds"),
        ("1 year in days", "365.2425 days"),
        ("7 days in weeks", "1 weeks"),
        ("72 F in C", "≈ 22.222222 °C"),
        ("72 f in c", "≈ 22.222222 °C"),
        ("-40 °F in °C", "-40 °C"),
        ("100 degrees celsius in fahrenheit", "212 °F"),
        ("0 K in °F", "-459.67 °F"),
        ("300 K in C", "26.85 °C"),
        ("1 acre in m^2", "4046.8564224 m²"),
        ("1 acre in square feet", "43,560 square feet"),
        ("2 ha in m2", "20,000 m2"),
        ("2 cubic metres in litres", "2000 litres"),
        ("1 gallon in L", "3.785411784 L"),
        ("1 imperial pint in ml", "568.26125 mL"),
        ("1 cup in tablespoons", "16 tablespoons"),
        ("60 miles per hour in km/h", "96.56064 km/h"),
        ("100 m / 9.58 s in km/h", "≈ 37.578288 km/h"),
        ("3 kt * 2 h in nautical miles", "6 nautical miles"),
        ("1 GiB in MB", "1073.741824 MB"),
        ("100 Mbps in MB/s", "12.5 MB/s"),
        ("10 GB / 50 Mbps in minutes", "≈ 26.666667 minutes"),
        ("1 kWh in MJ", "3.6 MJ"),
        ("1 kilowatt hour in joules", "3,600,000 joules"),
        ("1000 kcal in kJ", "4184 kJ"),
        ("1 hp in W", "745.69987158227022 W"),
        ("1 atm in kPa", "101.325 kPa"),
        ("5 kg * 9.81 m/s^2 in N", "49.05 N"),
        ("10 newton metres in J", "10 J"),
        ("1 turn in deg", "360 deg"),
        ("778.5 million km in au", "≈ 5.2039511 au"),
        ("3 dozen + 4", "≈ 3.3333333 dozen"),
    ],
)
def test_conversions(text: str, expected: str) -> None:
    assert str(calculate(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 + 3", "5"),
        ("5 km + 300 m", "5.3 km"),
        ("300 m + 5 km", "5300 m"),
        ("2 h 30 min * 2", "5 h"),
        ("100 km + 10%", "110 km"),
        ("10 km / 2 m", "5000"),
        ("10 km // 3 km", "3"),
        ("10 km % 3 km", "1 km"),
        ("3 m * 4 m", "12 m·m"),
        ("(3 m)^2", "9 m²"),
        ("(3 m)^4", "81 m^4"),
        ("10 km / 2 h", "5 km/h"),
        ("1 / 2 s", "0.5 1/s"),
        ("6 J / (2 m/s)", "3 J/(m/s)"),
        ("(2 km)^0", "1"),
        ("2 x 3 km", "6 km"),
        ("max(3 km, 200 m)", "3 km"),
        ("round(5.678 km, 1)", "5.7 km"),
        ("mean(1 h, 2 h)", "1.5 h"),
        ("abs(3 kg - 5 kg)", "2 kg"),
        ("sin(90 deg)", "≈ 1"),
        ("cos(60°)", "≈ 0.5"),
        ("-5 km", "-5 km"),
        ("3! km", "6 km"),
        ("pi * (3 m)^2", "≈ 28.274334 m²"),
    ],
)
def test_quantities_are_calculated_with_their_units(text: str, expected: str) -> None:
    assert str(calculate(text)) == expected


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("5 km + 3 kg", 5, "a mass cannot be added to a length"),
        ("5 km - 3", 5, "a plain number cannot be subtracted from a length"),
        ("5 km in kg", 5, "a length cannot be given in kg, a unit of mass"),
        ("5 in cm", 2, "a plain number cannot be given in cm, a unit of length"),
        ("5 km in 3", 5, "a unit was expected"),
        ("5 km in", 7, "missing"),
        ("20 C + 5 C", 5, "can be converted, not calculated with"),
        ("max(20 C, 5 C)", 0, "can be converted, not calculated with"),
        ("2 ^ (3 m)", 2, "an exponent is a plain number, not a length"),
        ("(3 m) ^ 0.5", 6, "whole powers"),
        ("(3 m)!", 5, "! needs a plain number"),
        ("sqrt(3 m)", 0, "sqrt needs a plain number, not a length"),
        ("max(3 m, 3 s)", 0, "arguments of one kind"),
        ("1 mlie", 2, "did you mean mile?"),
        ("5 mb in kB", 2, "did you mean MB or Mb?"),
        ("3 wugs", 2, "do not know 'wugs'"),
        ("5 km / 0 h", 5, "divides by zero"),
    ],
)
def test_units_that_do_not_fit_are_named(text: str, at: int, message: str) -> None:
    with pytest.raises(Problem) as caught:
        calculate(text)
    assert message in caught.value.message
    assert caught.value.at == at


LENGTHS = ["m", "km", "mile", "ft", "inch", "ly", "nmi", "µm", "light years", "yards"]
SCALES = ["°C", "°F", "K", "°R"]
values = st.fractions(-(10**6), 10**6, max_denominator=1000)


def problem_of(text: str) -> Problem | None:
    try:
        str(calculate(text))
    except Problem as problem:
        return problem
    return None


def exact(text: str) -> Fraction:
    return calculate(text).shown.number


@given(values, st.sampled_from(LENGTHS), st.sampled_from(LENGTHS))
def test_a_length_comes_back_exactly_from_every_other_unit(
    number: Fraction, unit: str, other: str
) -> None:
    there = exact(f"({number}) {unit} in {other}")
    assert exact(f"({there}) {other} in {unit}") == number


@given(values, st.sampled_from(SCALES), st.sampled_from(SCALES), st.sampled_from(SCALES))
def test_temperatures_agree_whatever_the_way(number: Fraction, a: str, b: str, c: str) -> None:
    direct = exact(f"({number}) {a} in {c}")
    between = exact(f"({number}) {a} in {b}")
    assert exact(f"({between}) {b} in {c}") == direct


@given(st.text(max_size=50) | st.text("0123456789.+-*/^() kmhinCF°to'\"", max_size=40))
def test_whatever_is_typed_is_a_quantity_or_a_problem(text: str) -> None:
    found = problem_of(text)
    assert found is None or 0 <= found.at <= len(text)


@pytest.mark.parametrize("name", ["m", "ft", "pt", "min", "kn", "kN", "mg", "Mg", "PS", "ps", "B"])
def test_symbols_are_told_apart_by_their_case(name: str) -> None:
    expected = {
        "m": 1,
        "ft": Fraction("0.3048"),
        "pt": Fraction("0.000473176473"),
        "min": 60,
        "kn": Fraction(463, 900),
        "kN": 1000,
        "mg": Fraction(1, 10**6),
        "Mg": 1000,
        "PS": Fraction("735.49875"),
        "ps": Fraction(1, 10**12),
        "B": 8,
    }
    unit = units.find(name)
    assert unit is not None
    assert unit.factor == expected[name]


def test_a_hint_prefers_swapped_letters() -> None:
    assert units.nearest("mlies") == "miles"
    assert units.nearest("secnod") == "second"
    assert units.nearest("qqqqq") is None
