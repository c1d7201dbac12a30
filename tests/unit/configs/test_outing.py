from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from outing import CITIES, weather


@given(st.sampled_from(CITIES), st.integers(1, 12))
def test_summer_is_never_colder_than_another_month(city: str, month: int) -> None:
    degrees = [int(weather(city, m).split()[0]) for m in (month, 7)]
    assert degrees[0] <= degrees[1]
