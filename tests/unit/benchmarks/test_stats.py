from __future__ import annotations

import pytest

from benchmarks.stats import Interval, middle, paired_ratio, percentile


def interval(rate: float) -> Interval:
    return Interval(rate=rate, p50_ms=1.0, p99_ms=2.0, cpu_us=10.0, load_busy=0.5)


def test_a_percentile_is_one_of_the_values_and_nothing_has_none() -> None:
    found = [percentile([4.0, 2.0, 1.0, 3.0], share) for share in (0.0, 0.5, 0.75, 1.0)]
    assert found == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_one_disturbed_round_moves_neither_the_middle_nor_the_ratio() -> None:
    rounds = [interval(rate) for rate in (100.0, 101.0, 5.0)]
    assert middle(rounds, lambda i: i.rate) == 100.0
    ours = [interval(rate) for rate in (50.0, 5.0, 50.0)]
    theirs = [interval(rate) for rate in (100.0, 10.0, 100.0)]
    assert paired_ratio(ours, theirs, lambda i: i.rate) == 0.5
    with pytest.raises(ValueError, match="longer"):
        paired_ratio(ours[:1], theirs[:2], lambda i: i.rate)
