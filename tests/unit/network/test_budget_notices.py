"""Notices of the hub about reached limits."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub.config.models import Budgets, LoopLimitConfig
from hubbub.network.services.budgets.account import BudgetAccount, Cost
from hubbub.network.services.budgets.daily import ReachedLimit
from hubbub.network.services.budgets.notices import BudgetNotices, Notice, reached_text
from hubbub.network.threads import Threads
from hubbub.protocol.spending import LIMITS, LimitName, Whose

NOTICES: list[tuple[LimitName, float, float, str]] = [
    ("hops", 8, 8, "gone through 8 messages in a row, its limit"),
    ("wakes", 64, 64, "started 64 turns, its limit"),
    ("wall_clock", 1801, 1800, "run for 30 minutes, its limit"),
    ("tokens", 1000, 1000, "used 1,000 of its 1,000 tokens, its limit"),
    ("tokens", 900, 1000, "used 900 of its 1,000 tokens, including questions in progress, and"),
    ("usd", 0.25, 0.5, "used $0.25 of its $0.5, including questions in progress, and the next"),
]


@pytest.mark.behaviour("H-2")
def test_a_budget_notice_names_the_limit_and_the_remedy() -> None:
    for limit, used, of, phrase in NOTICES:
        for person in (True, False):
            text = reached_text(limit, used, of, person=person)
            assert phrase in text
            assert text.endswith(f"or raise network.budgets.{limit}.")
            assert ("Write again to continue" in text) == person


@pytest.mark.behaviour("H-2", "H-3")
def test_each_limit_posts_its_notice(snapshot: SnapshotAssertion) -> None:
    posted: list[Notice] = []
    threads = Threads()
    thread = threads.ensure("channel.dev")
    notices = BudgetNotices(threads, posted.append, LoopLimitConfig())
    budgets = Budgets(
        hops=8, wakes=64, fan_out=4, agents=3, wall_clock=30.0, tokens=12_345, usd=0.123456
    )
    for person in (True, False):
        limits = budgets if person else budgets.halved()
        ledger = BudgetAccount(7, "ann", thread.no, 1000.0, limits, person=person)
        ledger.spend(Cost(1000, 234, 0.04321))
        for limit in LIMITS:
            notices.limit(ledger, limit, 1060.5)
    whose: tuple[tuple[Whose, str], ...] = (("network", ""), ("thread", "1"), ("agent", "calc"))
    amounts: tuple[tuple[LimitName, float, float], ...] = (
        ("tokens", 12_300.0, 12_345.0), ("usd", 0.12, 0.123456), ("wakes", 64.0, 64.0),
    )  # fmt: skip
    for (who, target), (limit, used, of) in zip(whose, amounts, strict=True):
        notices.day(ReachedLimit(who, target, limit, used, of), "2030-01-02", thread)
    assert [notice._asdict() for notice in posted] == snapshot
