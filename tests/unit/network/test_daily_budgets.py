"""Daily budget accounts."""

from __future__ import annotations

import pytest

from hubbub.config.models import DailyBudget, DailyBudgets
from hubbub.network.services.budgets.account import Cost
from hubbub.network.services.budgets.daily import Daily, day_of
from hubbub.network.stored import StoredSpending
from hubbub.network.wakes import Reason

NOON = 1_800_014_400.0  # of a day in 2027, UTC
DAY = 86400


def daily(**budgets: DailyBudget) -> Daily:
    return Daily(DailyBudgets.model_validate(budgets), {}, NOON)


@pytest.mark.behaviour("H-6")
def test_without_daily_limits_nothing_is_counted() -> None:
    none = daily()
    none.wake("a", 1, 1000)
    assert (none.limited, none.refuses("a", 1), none.used("a", 1)) == (False, None, [])


@pytest.mark.behaviour("H-6")
def test_a_daily_limit_applies_to_the_network_each_thread_or_each_agent() -> None:
    cases: list[tuple[str, tuple[str, int] | None]] = [
        ("network", None),
        ("thread", ("a", 2)),
        ("agent", ("b", 1)),
    ]
    for whose, unaffected in cases:
        accounts = daily(**{whose: DailyBudget(wakes=2)})
        accounts.wake("a", 1)
        assert accounts.refuses("a", 1) is None
        accounts.wake("a", 1)
        reached = accounts.refuses("a", 1)
        assert reached is not None
        assert (reached.whose, reached.limit, reached.used, reached.of) == (whose, "wakes", 2, 2)
        assert reached.reason == Reason(f"daily_{whose}")
        if unaffected is not None:
            assert accounts.refuses(*unaffected) is None
        accounts.wake("a", 1, -1)
        assert accounts.refuses("a", 1) is None


@pytest.mark.behaviour("H-6")
def test_usage_is_listed_for_the_network_and_the_named_thread_and_agent() -> None:
    accounts = daily(**dict.fromkeys(("network", "thread", "agent"), DailyBudget(wakes=9)))
    for agent, thread, times in (("a", 1, 1), ("a", 2, 2), ("b", 2, 4)):
        accounts.wake(agent, thread, times)
    accounts.wake("c", 3, -1)

    def used(agent: str | None, thread: int | None) -> list[tuple[str, str, float]]:
        return [(each.whose, each.target, each.used) for each in accounts.used(agent, thread)]

    network = ("network", "", 6)  # the last one was taken back
    assert used(None, None) == [network]
    assert used("a", None) == [network, ("agent", "a", 3)]
    assert used(None, 2) == [network, ("thread", "2", 6)]
    assert used("b", 2) == [network, ("thread", "2", 6), ("agent", "b", 4)]
    assert used("c", 3) == [network, ("thread", "3", 0), ("agent", "c", 0)]


@pytest.mark.behaviour("H-6")
def test_a_new_day_starts_with_only_the_open_reservations() -> None:
    accounts = daily(network=DailyBudget(tokens=100))
    accounts.spend("a", 1, Cost(60, 0))
    accounts.reserve("a", 1, 30, 0.0)
    assert [each.used for each in accounts.used(None, None)] == [90]
    before = accounts.day
    assert accounts.today(NOON + DAY // 2 - 1) == before
    assert accounts.today(NOON + DAY // 2) == day_of(NOON + DAY) != before
    assert [each.used for each in accounts.used(None, None)] == [30]
    accounts.reserve("a", 1, -30, 0.0)
    assert [each.used for each in accounts.used(None, None)] == [0]


@pytest.mark.behaviour("H-6")
def test_a_clock_that_is_set_to_another_day_and_back_loses_no_count() -> None:
    accounts = daily(agent=DailyBudget(tokens=100))
    accounts.spend("a", 1, Cost(60, 0))
    accounts.reserve("a", 1, 30, 0.0)
    for there, used in ((2 * DAY, 30), (-2 * DAY, 30), (0, 90), (2 * DAY, 30)):
        accounts.today(NOON + there)
        assert [each.used for each in accounts.used("a", None)] == [used]


@pytest.mark.behaviour("H-9")
def test_spending_of_the_day_is_counted_when_a_clock_that_was_behind_is_set() -> None:
    accounts = daily(agent=DailyBudget(wakes=9))
    accounts.restore([StoredSpending(day_of(NOON + days * DAY), "a", 1, days) for days in (1, 3)])
    assert [each.used for each in accounts.used("a", None)] == [0]
    accounts.today(NOON + 3 * DAY)
    assert [each.used for each in accounts.used("a", None)] == [3]


@pytest.mark.behaviour("H-9")
def test_spending_stored_today_is_counted_after_a_restart() -> None:
    accounts = daily(thread=DailyBudget(wakes=5, tokens=100))
    rows = [
        StoredSpending(day_of(NOON), "a", 1, 2, 1, 30, 10, 0.0),
        StoredSpending(day_of(NOON), "b", 1, 1, 1, 5, 0, 0.0),
        StoredSpending(day_of(NOON - DAY), "a", 1, 9, 9, 900, 900, 9.0),
    ]
    accounts.restore(rows)
    used = {each.limit: each.used for each in accounts.used(None, 1)}
    assert used == {"tokens": 45, "wakes": 3}
    accounts = daily(agent=DailyBudget(wakes=5, tokens=100))
    accounts.restore(rows)
    assert [each.used for each in accounts.used("a", None)] == [40, 2]


@pytest.mark.behaviour("H-7")
def test_an_estimate_is_checked_against_every_daily_limit() -> None:
    cases: list[tuple[int, list[str]]] = [(70, []), (71, ["agent"]), (91, ["network", "agent"])]
    for tokens, whose in cases:
        accounts = daily(network=DailyBudget(tokens=120), agent=DailyBudget(tokens=100))
        accounts.spend("a", 1, Cost(0, 20))
        accounts.reserve("a", 1, 10, 0.0)
        exceeded = accounts.exceeded_by("a", 1, tokens, 0.0)
        assert [each.whose for each in exceeded] == whose
        targets = {"network": "", "agent": "a"}
        assert [each.target for each in exceeded] == [targets[each.whose] for each in exceeded]
        assert {(each.limit, each.used) for each in exceeded} <= {("tokens", 30)}
    accounts = daily(agent=DailyBudget(usd=1.0))
    accounts.reserve("a", 1, 0, 0.4)
    assert accounts.exceeded_by("a", 1, 9, 0.6) == []
    (reached,) = accounts.exceeded_by("a", 1, 9, 0.7)
    assert (reached.limit, reached.used, reached.of) == ("usd", 0.4, 1.0)
