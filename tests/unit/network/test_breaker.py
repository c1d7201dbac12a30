"""The breaker's window of turns per thread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.config.budgets import BreakerConfig
from hubbub.network.services.stops import MAX_THREADS, Breaker


def breaker(turns: int = 3, within: float = 60.0, **more: bool) -> Breaker:
    return Breaker(BreakerConfig(turns=turns, within=within, **more))


@pytest.mark.behaviour("H-27")
def test_the_breaker_opens_at_the_first_turn_over_the_limit_in_its_window() -> None:
    for turns in (1, 2, 60):
        counting = breaker(turns)
        for n in range(turns):
            assert counting.count("t", f"a-m{n}", 0.0) is None
        assert counting.count("t", "a-m99", 59.999) == turns + 1
    counting = breaker(1)
    assert counting.count("t", "a-m1", 0.0) is None
    assert counting.count("t", "a-m2", 60.0) is None, "a turn as old as the window has expired"
    assert counting.count("u", "a-m2", 60.0) is None, "threads are counted separately"
    assert counting.count("t", "a-m3", 60.0) == 2
    counting.forget("t")
    assert counting.count("t", "a-m4", 60.0) is None
    off = breaker(1, enabled=False)
    assert [off.count("t", f"a-m{n}", 0.0) for n in range(5)] == [None] * 5
    counting = breaker(1)
    for n in range(MAX_THREADS + 1):
        counting.count(f"t{n}", "a-m1", 0.0)
    assert counting.count("t0", "a-m2", 0.0) is None, "the least recent thread is forgotten"


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 200)), max_size=40),
)
def test_the_breaker_opens_exactly_when_the_window_holds_too_many_turns(
    turns: int, starts: list[tuple[int, int]]
) -> None:
    counting, recent = breaker(turns), dict[int, float]()
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
