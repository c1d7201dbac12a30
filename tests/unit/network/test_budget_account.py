"""The budget account of an interaction: limits, usage and reservations."""

from __future__ import annotations

import pytest

from hubbub.config.models import Budgets
from hubbub.network.services.budgets.account import BudgetAccount, Cost


def account(*, halved: bool = False, **budgets: float | None) -> BudgetAccount:
    limits = Budgets.model_validate(budgets)
    limits = limits.halved() if halved else limits
    return BudgetAccount(7, "ann", 1, 1000.0, limits, person=True)


@pytest.mark.behaviour("H-3")
def test_a_halved_limit_is_at_least_one() -> None:
    budgets = Budgets(hops=1, wakes=1, fan_out=3, agents=None, wall_clock=1.0, tokens=1, usd=0.5)
    assert budgets.halved() == Budgets(
        hops=1, wakes=1, fan_out=1, agents=None, wall_clock=0.5, tokens=1, usd=0.25
    )


@pytest.mark.behaviour("H-1", "H-10")
def test_wakes_and_agents_are_counted_and_unwake_reverts_a_wake() -> None:
    ledger = account(wakes=2)
    for refused in (None, None, "wakes", "wakes"):
        assert ledger.refuses("bot") == refused
        ledger.wake("bot")
    ledger = account(agents=2, wakes=None)
    ledger.wake("one")
    assert ledger.refuses("two") is None
    ledger.wake("two")
    assert (ledger.refuses("one"), ledger.refuses("three")) == (None, "agents")
    ledger.wake("one")
    ledger.unwake("one")
    assert (ledger.wakes, ledger.agents) == (2, {"one": 1, "two": 1})
    ledger.unwake("one")
    assert (ledger.wakes, ledger.agents, ledger.refuses("three")) == (1, {"two": 1}, None)


@pytest.mark.behaviour("H-1", "H-7")
def test_time_tokens_and_money_are_barriers_that_include_reservations() -> None:
    for now, barrier in ((1059, None), (1060, None), (1060.1, "wall_clock")):
        assert account(wall_clock=60).barrier(now) == barrier
    for reserved in (0, 30):
        for tokens, barrier in ((99, None), (100, "tokens"), (101, "tokens")):
            ledger = account(tokens=100)
            ledger.spend(Cost(tokens - reserved, 0))
            ledger.reserved_tokens = reserved
            assert ledger.barrier(1000) == barrier
    for estimate, exceeded in ((9, ()), (10, ()), (11, ("tokens",))):
        ledger = account(tokens=100)
        ledger.spend(Cost(40, 50))
        assert ledger.exceeded_by(estimate, 5.0) == exceeded
    ledger = account(usd=0.3)
    ledger.spend(Cost(0, 0, 0.1))
    ledger.reserved_usd = 0.1
    assert ledger.exceeded_by(0, 0.1) == (), "the rounding error of 0.1 + 0.1 + 0.1 does not count"
    assert ledger.exceeded_by(0, 0.1001) == ("usd",)
    ledger.reserved_usd = 0.2
    assert ledger.barrier(1000) == "usd"


@pytest.mark.behaviour("H-11")
def test_usage_is_reported_for_configured_limits_only() -> None:
    ledger = account(wakes=None, tokens=100, agents=4)
    ledger.wake("one")
    ledger.spend(Cost(3, 4, 0.5))
    ledger.reserved_tokens = 10
    assert ledger.used(1000.5) == {"agents": 1, "wall_clock": 0.5, "tokens": 17}
    limits = {"hops": 8, "fan_out": 8, "agents": 4, "wall_clock": 1800, "tokens": 100}
    assert ledger.budget() == limits
    sums = {"turns": 0, "wakes": 1, "tokens_in": 3, "tokens_out": 4, "usd": 0.5}
    assert ledger.sums().model_dump() == sums
