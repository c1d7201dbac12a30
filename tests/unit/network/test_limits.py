from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.limits import TokenBucket

pytestmark = pytest.mark.behaviour("B-3")


def test_a_burst_passes_at_once_and_the_next_must_wait() -> None:
    bucket = TokenBucket(rate=20, burst=3, now=100.0)
    assert [bucket.take(100.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert bucket.take(100.0) == pytest.approx(1 / 20)


def test_who_waits_as_long_as_told_is_let_through() -> None:
    bucket = TokenBucket(rate=4, burst=1, now=0.0)
    bucket.take(0.0)
    wait = bucket.take(0.125)
    assert wait == 0.125
    assert bucket.take(0.125 + wait) == 0.0


def test_refusals_cost_nothing() -> None:
    bucket = TokenBucket(rate=1, burst=1, now=0.0)
    bucket.take(0.0)
    assert all(bucket.take(0.5) for _ in range(100))
    assert bucket.take(1.0) == 0.0


def test_a_long_rest_saves_up_no_more_than_a_burst() -> None:
    bucket = TokenBucket(rate=20, burst=2, now=0.0)
    bucket.take(0.0)
    assert [bucket.take(10**6) == 0.0 for _ in range(3)] == [True, True, False]


@given(
    st.integers(1, 50),
    st.integers(1, 50),
    st.lists(st.floats(0, 3, allow_subnormal=False), max_size=200),
)
def test_no_pattern_of_calls_beats_rate_and_burst(rate: int, burst: int, gaps: list[float]) -> None:
    bucket, now, taken = TokenBucket(rate, burst, 0.0), 0.0, 0
    for gap in gaps:
        now += gap
        taken += bucket.take(now) == 0.0
    assert taken <= burst + rate * now + 1e-6
