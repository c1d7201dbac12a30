"""Limits for pairs of agents that wake each other, with explicit times."""

from __future__ import annotations

import pytest

from hubbub.config.models import LoopLimitConfig
from hubbub.network.services.budgets import policy as module
from hubbub.network.services.budgets.policy import LoopLimiter


def limiter_of(wakes: int = 3, within: float = 10.0) -> LoopLimiter:
    return LoopLimiter(LoopLimitConfig(wakes=wakes, within=within))


@pytest.mark.behaviour("H-5")
def test_wakes_in_both_directions_share_a_sliding_window() -> None:
    limiter = limiter_of()
    wakes = [("a", "b"), ("b", "a"), ("a", "b"), ("b", "a"), ("a", "b")]
    assert [limiter.wake(*pair, 0.0) for pair in wakes] == [True] * 3 + [False] * 2
    assert limiter.wake("a", "c", 0.0)
    limiter = limiter_of(wakes=2)
    allowed = {at: limiter.wake("a", "b", at) for at in (0, 5, 9.9, 10, 14, 15)}
    assert allowed == {0: True, 5: True, 9.9: False, 10: True, 14: False, 15: True}
    off = LoopLimiter(LoopLimitConfig(wakes=1, enabled=False))
    off.person("a")
    assert all(off.wake("a", "b", 0.0) for _ in range(10))


@pytest.mark.behaviour("H-5", "H-10", "H-14")
def test_interactions_count_separately_and_rollbacks_and_people_reset_a_pair() -> None:
    limiter = limiter_of(wakes=1)
    assert [limiter.wake("a", "b", 0.0, of) for of in (1, 2, 0)] == [True] * 3
    assert [limiter.wake("b", "a", 0.0, of) for of in (1, 2, 0)] == [False] * 3
    limiter.roll_back("a", "b", 2)
    limiter.roll_back("x", "y")
    assert [limiter.wake("b", "a", 0.0, of) for of in (1, 2, 0)] == [False, True, False]
    limiter.roll_back("a", "b")
    assert limiter.wake("a", "b", 0.0)
    for woken in ("a", "b"):  # a message of a person resets the pair
        limiter = limiter_of(wakes=1)
        assert limiter.wake("a", "b", 0.0)
        limiter.person("c")
        assert not limiter.wake("b", "a", 0.0)
        limiter.person(woken)
        assert limiter.wake("b", "a", 0.0)
        assert not limiter.wake("a", "b", 0.0)


@pytest.mark.behaviour("H-5")
def test_a_limited_pair_gets_one_notice_per_window() -> None:
    limiter = limiter_of(wakes=1)
    limiter.wake("a", "b", 0.0)
    limiter.wake("a", "b", 0.0, 7)
    assert not limiter.was_notified("a", "b", 1.0)
    assert [limiter.notice_due("a", "b", at) for at in (1.0, 2.0, 11.0)] == [True, False, True]
    assert [limiter.was_notified("b", "a", at) for at in (12.0, 20.9, 21.0)] == [True, True, False]
    assert limiter.notice_due("b", "a", 12.0, 7), "per interaction of a person"
    assert not limiter.notice_due("a", "c", 12.0)
    assert not limiter.was_notified("a", "c", 12.0)


@pytest.mark.behaviour("H-5")
def test_expired_pairs_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAIRS", 10)
    limiter = limiter_of(wakes=2)
    assert limiter.wake("a", "b6", 0.0)
    for n in (*range(10), 9):
        assert limiter.wake("a", f"b{n}", float(n))
    assert limiter.wake("a", "new", 15.0)
    assert len(limiter) == 5, "b6 to b9 and the new pair"
    assert not limiter.wake("a", "b9", 15.0)
    assert limiter.wake("a", "b0", 15.0)
