"""When a process that died is restarted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.app.supervisor import GiveUp, Restart, RestartPolicy, RestartRules

SLOW = 20.0
"""Longer than a quick death, shorter than a steady life."""


def delays(policy: RestartPolicy, lives: list[float]) -> list[float]:
    verdicts = [policy.died(lived) for lived in lives]
    return [v.after_s for v in verdicts if isinstance(v, Restart)]


@pytest.mark.behaviour("L-4")
def test_the_delay_doubles_up_to_a_minute_and_a_steady_life_resets_it() -> None:
    assert delays(RestartPolicy(), [SLOW] * 10) == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert delays(RestartPolicy(), [SLOW, SLOW, SLOW, 500.0, SLOW]) == [0.5, 1, 2, 0.5, 1]


@pytest.mark.behaviour("L-4")
def test_five_quick_deaths_in_a_row_end_the_restarts_for_good() -> None:
    policy = RestartPolicy()
    assert delays(policy, [0.1] * 4) == [0.5, 1, 2, 4]
    assert policy.died(0.1) == GiveUp(5)
    assert policy.died(10_000.0) == GiveUp(5)
    policy = RestartPolicy()
    assert len(delays(policy, [0.1] * 4 + [SLOW] + [0.1] * 4)) == 9, "a longer life resets it"
    assert policy.died(0.1) == GiveUp(5)
    for lived, quick in ((9.999, True), (10.0, False)):
        policy = RestartPolicy(RestartRules(quick_deaths=1))
        assert isinstance(policy.died(lived), GiveUp) is quick


@given(st.lists(st.floats(0, 1000), max_size=60))
def test_delays_stay_in_bounds_and_giving_up_is_final(lives: list[float]) -> None:
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
def test_a_process_that_died_in_a_turn_restarts_after_the_shortest_delay_every_time() -> None:
    policy = RestartPolicy()
    verdicts = [policy.died(0.1, worked=True) for _ in range(20)]
    assert verdicts == [Restart(0.5)] * 20
    assert policy.died(0.1) == Restart(0.5), "the first death that counts"
