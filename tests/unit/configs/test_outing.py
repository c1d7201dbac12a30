from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outing import CITIES, Offers, room_price, sum_up, train_price, weather

from hubbub.agents.tools.base import ToolFailed


def test_a_city_is_found_however_it_is_written_and_unknown_ones_told() -> None:
    assert train_price(" rome ") == train_price("Rome") == 129.0
    with pytest.raises(ToolFailed) as told:
        train_price("Atlantis")
    assert told.value.near == CITIES
    offers = Offers()
    for city in ("Rome", "Paris"):
        with pytest.raises(ToolFailed, match="ask again"):
            offers.price(city)
        assert offers.price(city) == offers.price(city.lower()) > 0
    with pytest.raises(ToolFailed, match="at least one night"):
        room_price("Rome", 0)
    assert sum_up([0.1, 0.2]) == 0.3, "added in cents"


@given(st.sampled_from(CITIES), st.integers(1, 12))
def test_summer_is_never_colder_than_another_month(city: str, month: int) -> None:
    degrees = [int(weather(city, m).split()[0]) for m in (month, 7)]
    assert degrees[0] <= degrees[1]
