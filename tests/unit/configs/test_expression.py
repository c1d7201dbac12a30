from __future__ import annotations

from fractions import Fraction

import pytest
from expression import Binary, Call, Convert, Expression, Name, Number, Unary, parse
from hypothesis import given
from hypothesis import strategies as st
from tokens import Problem, tokens


def shape(tree: Expression) -> str:
    """The tree with every pair of parentheses written out."""
    match tree:
        case Number(value):
            return str(value)
        case Name(text):
            return text.replace(" ", "_")
        case Unary(op, operand):
            return f"({op} {shape(operand)})"
        case Binary(op, left, right):
            return f"({shape(left)} {op} {shape(right)})"
        case Call(function, arguments):
            return f"{function}[{', '.join(map(shape, arguments))}]"
        case Convert(value, target):
            return f"{shape(value)} -> {shape(target)}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", "(1 + (2 * 3))"),
        ("1 - 2 - 3", "((1 - 2) - 3)"),
        ("2 ^ 3 ^ 4", "(2 ^ (3 ^ 4))"),
        ("-2 ^ 2", "(- (2 ^ 2))"),
        ("2 ^ -3", "(2 ^ (- 3))"),
        ("-2 * 3", "((- 2) * 3)"),
        ("- - 2", "(- (- 2))"),
        ("3! ^ 2", "((! 3) ^ 2)"),
        ("20% of 5 + 1", "(((% 20) * 5) + 1)"),
        ("7 % 4", "(7 % 4)"),
        ("7 mod 4", "(7 % 4)"),
        ("5 km + 3 m", "((5 * km) + (3 * m))"),
        ("5 km / 2 h", "((5 * km) / (2 * h))"),
        ("5 km^2", "(5 * (km ^ 2))"),
        ("5 km²", "(5 * (km ^ 2))"),
        ("10 m/s", "((10 * m) / s)"),
        ("3 h 20 min", "((3 * h) and (20 * min))"),
        ("3 h and 20 min", "((3 * h) and (20 * min))"),
        ("3 h 20 min 5 s", "(((3 * h) and (20 * min)) and (5 * s))"),
        ("3 h 20 min * 2", "(((3 * h) and (20 * min)) * 2)"),
        ("-3 h 20 min", "(- ((3 * h) and (20 * min)))"),
        ("5'11\"", "((5 * ft) and (11 * inch))"),
        ("1/2 mile", "(1/2 * mile)"),
        ("1 / 2 mile", "(1 / (2 * mile))"),
        ("100/2 km", "(50 * km)"),
        ("2 light years", "(2 * light_years)"),
        ("2 (3 + 4)", "(2 * (3 + 4))"),
        ("2 pi", "(2 * pi)"),
        ("2 sqrt(4)", "(2 * sqrt[4])"),
        ("√9 + 1", "(sqrt[9] + 1)"),
        ("sqrt 9 + 1", "(sqrt[9] + 1)"),
        ("3 x 4", "(3 * 4)"),
        ("3 x (4)", "(3 * 4)"),
        ("12 in in cm", "(12 * inch) -> cm"),
        ("12 in to cm", "(12 * inch) -> cm"),
        ("12 in", "(12 * inch)"),
        ("5 cm in in", "(5 * cm) -> inch"),
        ("5 km in m/s", "(5 * km) -> (m / s)"),
        ("max(1,234)", "max[1, 234]"),
        ("max((1,234), 2)", "max[1234, 2]"),
        ("1,234 + 1", "(1234 + 1)"),
        ("2 + 2 =", "(2 + 2)"),
    ],
)
def test_the_tree_is_what_a_reader_means(text: str, expected: str) -> None:
    assert shape(parse(text)) == expected


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("5 km in", 7, "missing"),
        ("5 = 6 = 7", 6, "did not expect '='"),
        ("1/0 km", 1, "divides by zero"),
        ("max(1, )", 7, "did not expect ')'"),
        ("max(1 2)", 6, "did not expect '2'"),
        ("max(1", 3, "never closed"),
        ("1,2,3", 1, "comma"),
        ("3 € 4", 2, "'€'"),
        ("()", 1, "did not expect ')'"),
        ("² 2", 0, "did not expect"),
    ],
)
def test_what_is_no_expression_says_where_it_stops(text: str, at: int, message: str) -> None:
    with pytest.raises(Problem) as caught:
        parse(text)
    assert message in caught.value.message
    assert caught.value.at == at


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234,567", 1234567),
        ("1_000", 1000),
        ("1.5e3", 1500),
        ("2.5E-1", Fraction(1, 4)),
        (".5", Fraction(1, 2)),
        ("007", 7),
    ],
)
def test_numbers_are_read_exactly(text: str, value: Fraction | int) -> None:
    assert parse(text) == Number(Fraction(value), 0)


def test_a_letter_after_a_number_is_a_unit_and_no_exponent() -> None:
    assert shape(parse("2e")) == "(2 * e)"
    assert shape(parse("2em")) == "(2 * em)"


def test_tokens_know_their_places() -> None:
    assert [(t.kind, t.text, t.at, t.end) for t in tokens("3 plus  km")] == [
        ("number", "3", 0, 1),
        ("op", "+", 2, 6),
        ("name", "km", 8, 10),
        ("end", "", 10, 10),
    ]


@given(st.integers(0, 10**12))
def test_thousands_separators_change_nothing(number: int) -> None:
    assert parse(f"{number:,}") == parse(f"{number:_}") == Number(Fraction(number), 0)


@given(st.lists(st.sampled_from(["1", "2.5", "km", "h", "+", "*", "/", "(", ")", "in", "-"])))
def test_spaces_between_words_do_not_matter(words: list[str]) -> None:
    def outcome(text: str) -> str | None:
        try:
            return shape(parse(text))
        except Problem:
            return None

    assert outcome(" ".join(words)) == outcome("   ".join(words))
