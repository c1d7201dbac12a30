"""Two agents that wake each other, by a clock of the test's own."""

from __future__ import annotations

import pytest

from hubbub.config.models import DampenerConfig
from hubbub.network.control import dampener as module
from hubbub.network.control.dampener import Dampener


def made(wakes: int = 3, within: float = 10.0) -> Dampener:
    return Dampener(DampenerConfig(wakes=wakes, within=within))


@pytest.mark.behaviour("H-5")
def test_both_directions_count_together() -> None:
    dampener = made()
    volley = [("a", "b"), ("b", "a"), ("a", "b"), ("b", "a"), ("a", "b")]
    assert [dampener.wake(*pair, 0.0) for pair in volley] == [True] * 3 + [False] * 2
    assert dampener.wake("a", "c", 0.0)


@pytest.mark.behaviour("H-14")
def test_what_people_have_set_in_motion_counts_for_itself() -> None:
    dampener = made(wakes=1)
    assert [dampener.wake("a", "b", 0.0, of) for of in (1, 2, 0)] == [True] * 3
    assert [dampener.wake("b", "a", 0.0, of) for of in (1, 2, 0)] == [False] * 3
    dampener.take_back("a", "b", 2)
    assert [dampener.wake("b", "a", 0.0, of) for of in (1, 2, 0)] == [False, True, False]


@pytest.mark.behaviour("H-5")
def test_wakes_count_for_as_long_as_the_window() -> None:
    dampener = made(wakes=2)
    assert [dampener.wake("a", "b", at) for at in (0, 5, 9.9, 10, 14, 15)] == [
        True,
        True,
        False,
        True,
        False,
        True,
    ]


@pytest.mark.behaviour("H-5")
def test_a_person_lets_the_pair_begin_anew() -> None:
    for woken in ("a", "b"):
        dampener = made(wakes=1)
        assert dampener.wake("a", "b", 0.0)
        dampener.person("c")
        assert not dampener.wake("b", "a", 0.0)
        dampener.person(woken)
        assert dampener.wake("b", "a", 0.0)
        assert not dampener.wake("a", "b", 0.0)


@pytest.mark.behaviour("H-10")
def test_a_wake_that_is_taken_back_may_be_made_again() -> None:
    dampener = made(wakes=1)
    assert dampener.wake("a", "b", 0.0)
    dampener.take_back("a", "b")
    assert dampener.wake("b", "a", 0.0)
    assert not dampener.wake("a", "b", 0.0)
    dampener.take_back("x", "y")


@pytest.mark.behaviour("H-5")
def test_pairs_that_no_longer_count_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PAIRS", 10)
    dampener = made(wakes=1)
    for n in range(10):
        assert dampener.wake("a", f"b{n}", float(n))
    assert dampener.wake("a", "late", 15.0)
    assert len(dampener) == 5, "b6 to b9 may count, and the late one"
    assert not dampener.wake("a", "b9", 15.0)
    assert dampener.wake("a", "b0", 15.0)


@pytest.mark.behaviour("H-5")
def test_one_that_is_off_lets_everything_pass() -> None:
    dampener = Dampener(DampenerConfig(wakes=1, enabled=False))
    dampener.person("a")
    assert all(dampener.wake("a", "b", 0.0) for _ in range(10))
