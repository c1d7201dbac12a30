"""What a model's tokens cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.config.models import Price
from tests.unit.config.conftest import Loading, Problems

MODEL = "models:\n  small:\n    model: m\n    price: {price}\n"


def test_a_price_is_dollars_for_a_million_tokens_in_and_out(loading: Loading) -> None:
    file = loading(MODEL.format(price="{input: 0.25, output: 2.00}")).file
    price = file.models["small"].price
    assert price == Price(input=0.25, output=2.0)
    assert price is not None
    assert price.of(1_000_000, 1_000_000) == 2.25
    assert price.of(1000, 100) == pytest.approx(0.00045)


def test_a_model_has_no_price_of_its_own(loading: Loading) -> None:
    assert loading("models: {small: {model: m}}").file.models["small"].price is None


def test_a_model_on_ones_own_machine_is_free(loading: Loading) -> None:
    price = loading(MODEL.format(price="{input: 0, output: 0}")).file.models["small"].price
    assert price is not None
    assert price.of(10**9, 10**9) == 0.0


@pytest.mark.behaviour("L-3")
@pytest.mark.parametrize(
    ("price", "complaint"),
    [
        (
            "{input: 1, ouput: 2}",
            "unknown key 'ouput' in models.small.price; did you mean 'output'?",
        ),
        ("{input: 1}", "models.small.price needs the key 'output'"),
        ("{input: -1, output: 2}", "models.small.price.input is -1: expected at least 0"),
        ("{input: .inf, output: 2}", "models.small.price.input is '.inf': expected a number"),
        ("{input: 1, output: dear}", "models.small.price.output is 'dear': expected a number"),
        ("0.25", "models.small.price is 0.25: expected keys with values"),
        ("{input: 1, output: 2, cached: 0.1}", "unknown key 'cached' in models.small.price"),
    ],
)
def test_a_price_that_is_none_is_told_with_its_place(
    problems: Problems, price: str, complaint: str
) -> None:
    (problem,) = problems(MODEL.format(price=price))
    assert problem.startswith("net.yaml:4: ")
    assert complaint in problem


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 1000), st.floats(0, 1000))
def test_two_answers_cost_what_one_of_their_size_costs(
    read: int, written: int, input: float, output: float
) -> None:
    price = Price(input=input, output=output)
    together = price.of(2 * read, 2 * written)
    assert together == pytest.approx(2 * price.of(read, written), abs=1e-11)
