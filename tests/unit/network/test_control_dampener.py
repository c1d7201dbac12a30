"""Two agents that wake each other, by a clock of the test's own."""

from __future__ import annotations

import pytest

from hubbub.config.models import DampenerConfig
from hubbub.network.services.budgets import dampener as module
from hubbub.network.services.budgets.dampener import Dampener


def made(wakes: int = 3, within: float = 10.0) -> Dampener:
    return Dampener(DampenerConfig(wakes=wakes, within=within))


@pytest.mark.behaviour("H-5")
def test_both_directions_count_together_for_as_long_as_the_window() -> None:
    dampener = made()
    volley = [("a", "b"), ("b", "a"), ("a", "b"), ("b", "a"), ("a", "b")]
    assert [dampener.wake(*pair, 0.0) for pair in volley] == [True] * 3 + [False] * 2
    assert dampener.wake("a", "c", 0.0)
    dampener = made(wakes=2)
    passed = {at: dampener.wake("a", "b", at) for at in (0, 5, 9.9, 10, 14, 15)}
    assert passed == {0: True, 5: True, 9.9: False, 10: True, 14: False, 15: True}
    off = Dampener(DampenerConfig(wakes=1, enabled=False))
    off.person("a")
    assert all(off.wake("a", "b", 0.0) for _ in range(10))


@pytest.mark.behaviour("H-5", "H-10", "H-14")
def test_what_people_set_in_motion_counts_for_itself_and_may_be_taken_back() -> None:
    dampener = made(wakes=1)
    assert [dampener.wake("a", "b", 0.0, of) for of in (1, 2, 0)] == [True] * 3
    assert [dampener.wake("b", "a", 0.0, of) for of in (1, 2, 0)] == [False] * 3
    dampener.take_back("a", "b", 2)
    dampener.take_back("x", "y")
    assert [dampener.wake("b", "a", 0.0, of) for of in (1, 2, 0)] == [False, True, False]
    dampener.take_back("a", "b")
    assert dampener.wake("a", "b", 0.0)
    for woken in ("a", "b"):  # a person lets the pair begin anew
        dampener = made(wakes=1)
        assert dampener.wake("a", "b", 0.0)
        dampener.person("c")
        assert not dampener.wake("b", "a", 0.0)
        dampener.person(woken)
        assert dampener.wake("b", "a", 0.0)
        assert not dampener.wake("a", "b", 0.0)


@pytest.mark.behaviour("H-5")
def test_that_a_pair_has_no_breath_is_told_once_in_the_time_that_counts() -> None:
    dampener = made(wakes=1)
    dampener.wake("a", "b", 0.0)
    dampener.wake("a", "b", 0.0, 7)
    assert not dampener.was_told("a", "b", 1.0)
    assert [dampener.tells("a", "b", at) for at in (1.0, 2.0, 11.0)] == [True, False, True]
    assert [dampener.was_told("b", "a", at) for at in (12.0, 20.9, 21.0)] == [True, True, False]
    assert dampener.tells("b", "a", 12.0, 7), "in a person's interaction for itself"
    assert not dampener.tells("a", "c", 12.0)
    assert not dampener.was_told("a", "c", 12.0)


@pytest.mark.behaviour("H-5")
def test_pairs_that_no_longer_count_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PAIRS", 10)
    dampener = made(wakes=2)
    assert dampener.wake("a", "b6", 0.0)
    for n in (*range(10), 9):
        assert dampener.wake("a", f"b{n}", float(n))
    assert dampener.wake("a", "late", 15.0)
    assert len(dampener) == 5, "b6 to b9 may count, and the late one"
    assert not dampener.wake("a", "b9", 15.0)
    assert dampener.wake("a", "b0", 15.0)
