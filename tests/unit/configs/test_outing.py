from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outing import CITIES, Offers, room_price, sum_up, train_price, weather

from hubbub.agents.tools.base import ToolFailed


def test_a_city_is_found_however_it_is_written() -> None:
    assert train_price(" rome ") == train_price("Rome") == 129.0


def test_a_city_that_is_not_known_is_told_with_those_that_are() -> None:
    with pytest.raises(ToolFailed) as told:
        train_price("Atlantis")
    assert told.value.near == CITIES


def test_the_offers_of_a_city_are_there_when_they_are_asked_for_again() -> None:
    offers = Offers()
    for city in ("Rome", "Paris"):
        with pytest.raises(ToolFailed, match="ask again"):
            offers.price(city)
        assert offers.price(city) == offers.price(city.lower()) > 0


def test_a_stay_has_nights() -> None:
    with pytest.raises(ToolFailed, match="at least one night"):
        room_price("Rome", 0)


@given(st.sampled_from(CITIES), st.integers(1, 12))
def test_summer_is_never_colder_than_another_month(city: str, month: int) -> None:
    degrees = [int(weather(city, m).split()[0]) for m in (month, 7)]
    assert degrees[0] <= degrees[1]


def test_amounts_are_added_in_cents() -> None:
    assert sum_up([0.1, 0.2]) == 0.3
