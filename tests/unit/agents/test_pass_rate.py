"""The confidence interval of a pass rate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.lab.expectations import wilson

pytestmark = pytest.mark.behaviour("Q-10")

COUNTS = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_the_interval_has_the_published_values() -> None:
    for passed, runs, low, high in [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # Five runs, the most frequent case.
        (5, 5, 0.5655, 1.0000),
        (4, 5, 0.3755, 0.9638),
        (0, 5, 0.0000, 0.4345),
    ]:
        assert wilson(passed, runs) == pytest.approx((low, high), abs=0.00006)
    assert wilson(0, 0) == (0.0, 1.0)
    for passed, runs in [(1, 0), (-1, 5), (6, 5)]:
        with pytest.raises(ValueError, match="cannot have passed"):
            wilson(passed, runs)


@given(COUNTS)
def test_the_interval_lies_within_0_and_1_and_contains_the_rate(counts: tuple[int, int]) -> None:
    passed, runs = counts
    low, high = wilson(passed, runs)
    assert 0.0 <= low <= passed / runs <= high <= 1.0
