from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from arithmetic import evaluate
from exact import MAX_DIGITS, Value
from expression import MAX_LENGTH, Problem
from hypothesis import given, settings
from hypothesis import strategies as st
from showing import show

from tests.examples import examples


def problem_of(text: str) -> Problem | None:
    try:
        show(evaluate(text))
    except Problem as problem:
        return problem
    return None


def result(text: str) -> str:
    return show(evaluate(text))


# Against Python's own evaluation ----------------------------------------------------------------

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


expressions = st.recursive(numbers, combined, max_leaves=8)


def python_value(text: str) -> Fraction | None:
    """What Python makes of the expression, in fractions; None if it divides by zero."""
    exact = re.sub(r"\d+(?:\.\d+)?", lambda n: f"F('{n[0]}')", text)
    exact = re.sub(r"\*\*F\('(\d)'\)", r"**\1", exact)
    try:
        return Fraction(eval(exact, {"F": Fraction, "abs": abs}))  # only text made above
    except ZeroDivisionError:
        return None


@settings(max_examples=examples(150))
@given(expressions)
def test_expressions_mean_what_they_mean_in_python(text: str) -> None:
    expected = python_value(text)
    if expected is None:
        with pytest.raises(Problem, match="divides by zero"):
            evaluate(text)
        return
    if refused := problem_of(text):
        assert "digits" in refused.message or "characters" in refused.message
        return
    value = evaluate(text)
    if value.exact:
        assert value.number == expected
    else:  # denominators beyond the limit are rounded to 50 digits
        assert abs(value.number - expected) <= abs(expected) / 10**40


@given(st.text(max_size=60) | st.text("0123456789.+-*/%^()! ,ekmsqrtinof√²'\"°", max_size=60))
def test_whatever_is_typed_is_a_value_or_a_problem_with_a_place_in_it(text: str) -> None:
    found = problem_of(text)
    assert found is None or (0 <= found.at <= len(text) and found.message)


@given(st.integers(-(10**39), 10**39))
def test_whole_numbers_are_shown_with_every_digit(number: int) -> None:
    assert int(show(Value(Fraction(number))).replace(",", "")) == number


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=6, allow_nan=False))
def test_decimals_are_shown_as_they_are(number: Decimal) -> None:
    shown = show(Value(Fraction(number)))
    assert Decimal(shown.replace(",", "")) == number


@given(st.fractions(max_denominator=10**6))
def test_what_is_shown_reads_as_the_same_number_again(number: Fraction) -> None:
    shown = show(Value(number))
    again = evaluate(shown.removeprefix("≈ ")).number
    assert (
        again == number
        if not shown.startswith("≈")
        else abs(again - number) <= abs(number) / 10**11
    )


# Operators --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 + 3 * 4^2", "50"),
        ("2 ** 3 ** 2", "512"),
        ("-2^2", "-4"),
        ("2^-3^2", "0.001953125"),
        ("0.1 + 0.2", "0.3"),
        ("1/3", "≈ 0.333333333333"),
        ("1/3 * 3", "1"),
        ("7 // -2", "-4"),
        ("-7 % 3", "2"),
        ("7 mod 4", "3"),
        ("10!", "3,628,800"),
        ("3!^2", "36"),
        ("2 (3 + 4)", "14"),
        ("(1 + 1)(2 + 2)", "8"),
        ("2pi", "≈ 6.28318530718"),
        ("3 x 4", "12"),
        ("3x4", "12"),
        ("6 × 7 ÷ 2", "21"),
        ("8 − 3", "5"),
        ("5 plus 3 times 2", "11"),
        ("10 divided by 4 minus 1", "1.5"),
        ("3 squared plus 2 cubed", "17"),
        ("2 to the power of 10", "1024"),
        ("5² - 4²", "9"),
        ("√16 + 2√9", "10"),
        ("the square root of 2 squared", "2"),
        ("cube root of 27", "3"),
        ("sqrt 16", "4"),
        ("1,234,567.89 * 2", "2,469,135.78"),
        ("1_000_000", "1,000,000"),
        (".5 + 1e3", "1000.5"),
        ("1.5e-3", "0.0015"),
        ("2 + 2 =", "4"),
    ],
)
def test_operators_bind_as_in_mathematics(text: str, expected: str) -> None:
    assert result(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20%", "0.2"),
        ("20% of 50", "10"),
        ("100 + 20%", "120"),
        ("100 - 20%", "80"),
        ("100 * 20%", "20"),
        ("50% + 25%", "0.625"),
        ("20% - 5", "-4.8"),
        ("7 % 3", "1"),
        ("7 % (2 + 1)", "1"),
    ],
)
def test_a_percent_sign_is_a_percentage_or_a_remainder(text: str, expected: str) -> None:
    assert result(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sqrt(16)", "4"),
        ("sqrt(2)", "≈ 1.41421356237"),
        ("sqrt(1/4)", "0.5"),
        ("cbrt(-8)", "-2"),
        ("root(32, 5)", "2"),
        ("root(-32, 5)", "-2"),
        ("8^(1/3)", "2"),
        ("(8/27)^(2/3)", "≈ 0.444444444444"),
        ("2^0.5", "≈ 1.41421356237"),
        ("0^0", "1"),
        ("1.0005^3650", "≈ 6.19996658194"),
        ("exp(0)", "1"),
        ("ln(e)", "≈ 1"),
        ("log(1000)", "3"),
        ("log2(1/8)", "-3"),
        ("log2(10)", "≈ 3.32192809489"),
        ("sin(pi)", "≈ 0"),
        ("cos(0)", "≈ 1"),
        ("degrees(pi)", "≈ 180"),
        ("atan2(1, 1)", "≈ 0.785398163397"),
        ("round(2.5)", "3"),
        ("round(-1.005, 2)", "-1.01"),
        ("round(1234, -2)", "1200"),
        ("floor(-1.5) + ceil(1.2)", "0"),
        ("max(1,234)", "234"),
        ("max((1,234), 5)", "1234"),
        ("mean(1, 2, 6)", "3"),
        ("median(5, 1, 3)", "3"),
        ("median(1, 2)", "1.5"),
        ("gcd(12, 18) + lcm(4, 6)", "18"),
        ("sum(1, 2, 3) - min(4, 5)", "2"),
        ("abs(-3)", "3"),
    ],
)
def test_functions(text: str, expected: str) -> None:
    assert result(text) == expected


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("9**9**9", 1, "about 369,693,100 digits"),
        ("9^9^9^9", 3, "digits"),
        ("2^1e300", 1, "digits"),
        ("0.1^2000", 3, "digits"),
        ("451!", 3, "digits"),
        ("(9!)!", 4, "digits"),
        ("1e999 * 1e999 * 1e10", 6, "digits"),
        ("1e1001", 0, "exponent"),
        ("1/0", 1, "divides by zero"),
        ("0^-1", 1, "divides by zero"),
        ("5 % (2 - 2)", 2, "divides by zero"),
        ("1 // 0", 2, "divides by zero"),
        ("2 + * 3", 4, "did not expect '*'"),
        ("2 +", 3, "missing"),
        ("", 0, "missing"),
        ("(1 + 2", 0, "never closed"),
        ("1 + 2)", 5, "did not expect ')'"),
        ("2 3", 2, "did not expect '3'"),
        ("1,23", 1, "comma"),
        ("3 $ 4", 2, "'$' means nothing"),
        ("foo(1)", 0, "no function 'foo'"),
        ("bar + 1", 0, "do not know 'bar'"),
        ("sqrt(-1)", 0, "not real"),
        ("(-8)^(1/3)", 4, "no real power"),
        ("(-1)!", 4, "factorial"),
        ("2.5!", 3, "factorial"),
        ("ln(0)", 0, "positive"),
        ("asin(2)", 0, "not defined"),
        ("tan(1e400)", 0, "not defined"),
        ("exp(1e6)", 0, "out of range"),
        ("gcd(1.5, 2)", 0, "whole numbers"),
        ("root(2, 0)", 0, "degree"),
        ("sqrt()", 0, "one argument"),
        ("round(1, 2, 3)", 0, "1 to 2 arguments"),
        ("max()", 0, "1 or more"),
        ("round(1, 1000)", 0, "digits"),
        ("3 to 4", 2, "no unit"),
        ("(" * 60 + "1" + ")" * 60, 50, "nested"),
        ("1+" * 300 + "1", MAX_LENGTH, "characters"),
    ],
)
def test_what_cannot_be_calculated_says_where_and_why(text: str, at: int, message: str) -> None:
    with pytest.raises(Problem) as caught:
        evaluate(text)
    assert message in caught.value.message
    assert caught.value.at == at


def test_a_problem_points_to_its_place() -> None:
    with pytest.raises(Problem) as caught:
        evaluate("2 + * 3")
    assert caught.value.pointed("2 + * 3") == "2 + * 3\n    ^ I did not expect '*' here"


def test_the_largest_results_are_shown_in_powers_of_ten() -> None:
    assert result("10^1000") == "1e1000"
    assert result("450!").startswith("≈ 1.7333687331")
    assert MAX_DIGITS == 1000
