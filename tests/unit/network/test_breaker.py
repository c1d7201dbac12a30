"""The breaker's window of turns per thread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.config.budgets import BreakerConfig
from hubbub.network.services.stops import MAX_THREADS, Breaker


def test_the_breaker_forgets_the_least_recent_of_too_many_threads() -> None:
    counting = Breaker(BreakerConfig(turns=1, within=60.0))
    for n in range(MAX_THREADS + 1):
        counting.count(f"t{n}", "a-m1", 0.0)
    assert counting.count("t0", "a-m2", 0.0) is None
    assert counting.count(f"t{MAX_THREADS}", "a-m2", 0.0) == 2


@pytest.mark.behaviour("H-27")
@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 200)), max_size=40),
)
def test_the_breaker_opens_exactly_when_the_window_holds_too_many_turns(
    turns: int, starts: list[tuple[int, int]]
) -> None:
    counting, recent = Breaker(BreakerConfig(turns=turns, within=60.0)), dict[int, float]()
    now = 0.0
    for turn, delay in starts:
        now += delay / 10
        recent = {n: at for n, at in recent.items() if at > now - 60}
        if len(recent) <= turns:
            recent.setdefault(turn, now)
        is_open = counting.count("t", f"a-m{turn}", now) is not None
        assert is_open == (len(recent) > turns)
        if is_open:
            counting.forget("t")
            recent.clear()
