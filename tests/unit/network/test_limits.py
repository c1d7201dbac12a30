from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.limits import TokenBucket

pytestmark = pytest.mark.behaviour("B-3")


def test_a_burst_passes_and_the_next_call_waits_as_reported() -> None:
    bucket = TokenBucket(rate=20, burst=3, now=100.0)
    assert [bucket.take(100.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert all(bucket.take(100.0) == pytest.approx(1 / 20) for _ in range(9)), "a refusal is free"
    assert bucket.take(100.0 + 1 / 16) == 0.0
    assert [bucket.take(10**6) == 0.0 for _ in range(4)] == [True, True, True, False], "no savings"
    slow = TokenBucket(rate=4, burst=1, now=0.0)
    assert [slow.take(0.0), slow.take(0.125), slow.take(0.25)] == [0.0, 0.125, 0.0]


@given(
    st.integers(1, 50),
    st.integers(1, 50),
    st.lists(st.floats(0, 3, allow_subnormal=False), max_size=200),
)
def test_no_pattern_of_calls_exceeds_rate_and_burst(
    rate: int, burst: int, gaps: list[float]
) -> None:
    bucket, now, taken = TokenBucket(rate, burst, 0.0), 0.0, 0
    for gap in gaps:
        now += gap
        taken += bucket.take(now) == 0.0
    assert taken <= burst + rate * now + 1e-6
