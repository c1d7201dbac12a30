"""The breaker's window: what it counts, what it forgets, and where exactly it says no."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.config.budgets import BreakerConfig
from hubbub.network.services.stops import MAX_THREADS, Breaker


def breaker(turns: int = 3, within: float = 60.0, **more: bool) -> Breaker:
    return Breaker(BreakerConfig(turns=turns, within=within, **more))


@pytest.mark.behaviour("H-27")
def test_the_turn_after_the_last_that_is_allowed_is_one_too_many() -> None:
    for turns in (1, 2, 60):
        counting = breaker(turns)
        for n in range(turns):
            assert counting.count("t", f"a-m{n}", 0.0) is None
        assert counting.count("t", "a-m99", 59.999) == turns + 1
    counting = breaker(1)
    assert counting.count("t", "a-m1", 0.0) is None
    assert counting.count("t", "a-m2", 60.0) is None, "as old as the window: it counts no more"
    assert counting.count("u", "a-m2", 60.0) is None, "threads are counted apart"
    assert counting.count("t", "a-m3", 60.0) == 2
    counting.forget("t")
    assert counting.count("t", "a-m4", 60.0) is None
    off = breaker(1, enabled=False)
    assert [off.count("t", f"a-m{n}", 0.0) for n in range(5)] == [None] * 5
    counting = breaker(1)
    for n in range(MAX_THREADS + 1):
        counting.count(f"t{n}", "a-m1", 0.0)
    assert counting.count("t0", "a-m2", 0.0) is None, "the thread of longest ago is forgotten"


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 200)), max_size=40),
)
def test_it_says_no_just_when_more_turns_lie_within_the_window(
    turns: int, begun: list[tuple[int, int]]
) -> None:
    counting, seen = breaker(turns), dict[int, float]()
    now = 0.0
    for turn, later in begun:
        now += later / 10
        seen = {n: at for n, at in seen.items() if at > now - 60}
        if len(seen) <= turns:
            seen.setdefault(turn, now)
        told = counting.count("t", f"a-m{turn}", now)
        assert (told is not None) == (len(seen) > turns)
        if told is not None:
            counting.forget("t")
            seen.clear()
