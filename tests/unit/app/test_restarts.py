"""When a process that died is started again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.app.restarts import GiveUp, Restart, RestartPolicy, RestartRules

SLOW = 20.0
"""Longer than a quick death, shorter than a steady life."""


def delays(policy: RestartPolicy, lives: list[float]) -> list[float]:
    verdicts = [policy.died(lived) for lived in lives]
    return [v.after_s for v in verdicts if isinstance(v, Restart)]


@pytest.mark.behaviour("L-4")
def test_the_delay_doubles_from_death_to_death_up_to_a_minute() -> None:
    found = delays(RestartPolicy(), [SLOW] * 10)
    assert found == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.behaviour("L-4")
def test_five_quick_deaths_in_a_row_open_the_circuit() -> None:
    policy = RestartPolicy()
    assert delays(policy, [0.1] * 4) == [0.5, 1, 2, 4]
    assert policy.died(0.1) == GiveUp(5)


def test_an_open_circuit_stays_open() -> None:
    policy = RestartPolicy()
    for _ in range(5):
        policy.died(0.0)
    assert policy.died(10_000.0) == GiveUp(5)


def test_a_longer_life_in_between_starts_the_count_of_quick_deaths_anew() -> None:
    policy = RestartPolicy()
    assert len(delays(policy, [0.1] * 4 + [SLOW] + [0.1] * 4)) == 9
    assert policy.died(0.1) == GiveUp(5)


def test_a_steady_life_makes_the_first_delay_count_again() -> None:
    policy = RestartPolicy()
    assert delays(policy, [SLOW, SLOW, SLOW, 500.0, SLOW]) == [0.5, 1, 2, 0.5, 1]


@pytest.mark.parametrize(("lived", "quick"), [(9.999, True), (10.0, False)])
def test_a_death_is_quick_below_the_border(lived: float, quick: bool) -> None:
    policy = RestartPolicy(RestartRules(quick_deaths=1))
    assert isinstance(policy.died(lived), GiveUp) is quick


@given(st.lists(st.floats(0, 1000), max_size=60))
def test_whatever_happens_delays_stay_in_bounds_and_the_circuit_opens_once(
    lives: list[float],
) -> None:
    policy, rules = RestartPolicy(), RestartRules()
    given_up = False
    for n, lived in enumerate(lives):
        verdict = policy.died(lived)
        if isinstance(verdict, Restart):
            assert not given_up
            assert rules.first_s <= verdict.after_s <= rules.most_s
        else:
            last = lives[max(0, n - rules.quick_deaths + 1) : n + 1]
            assert given_up or all(life < rules.quick_s for life in last)
            given_up = True


@pytest.mark.behaviour("L-4", "R-7")
def test_who_died_in_a_turn_starts_again_soon_however_often() -> None:
    policy = RestartPolicy()
    found = [policy.died(0.1, worked=True) for _ in range(20)]
    assert found == [Restart(0.5)] * 20
    assert policy.died(0.1) == Restart(0.5)  # and the next that came to nothing is the first
