"""Accounts in the cache, and those that must be loaded."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.clock import SystemClock
from hubbub.config.models import Budgets
from hubbub.network.log import Log
from hubbub.network.metrics import HubMetrics
from hubbub.network.services.budgets.accounts import BudgetAccounts, UnsavedCounts
from hubbub.network.store import open_store
from hubbub.network.threads import Threads
from hubbub.network.wakes import Decision, Reason


def cache(size: int = 4) -> BudgetAccounts:
    return BudgetAccounts(open_store("sqlite::memory:"), Threads(), Budgets(), size)


def opened(accounts: BudgetAccounts, seq: int, *, woken: tuple[str, ...] = ("bot",)) -> None:
    decisions = [Decision(agent, Reason.DIRECT, "required") for agent in woken]
    decisions.append(Decision("ann", Reason.OWN, None))
    accounts.opened([(seq, "ann", True, 1, 100.0, decisions)])


@pytest.mark.behaviour("H-9")
def test_an_account_is_built_from_its_cached_opening() -> None:
    accounts = cache()
    for seq in range(1, 6):
        opened(accounts, seq, woken=("a", "b"))
    assert accounts.find("i1") is None, "an old opening must be loaded"
    ledger = accounts.find("i3")
    assert ledger is not None
    assert (ledger.interaction, ledger.opened_by, ledger.wakes) == ("i3", "ann", 2)
    assert ledger.agents.keys() == {"a", "b"}
    assert accounts.find("i3") is ledger
    assert (accounts.find("i9"), accounts.find("nonsense")) == (None, None)


@pytest.mark.behaviour("H-9")
def test_a_pinned_account_stays_and_an_evicted_changed_one_is_not_rebuilt() -> None:
    accounts = cache(size=4)
    opened(accounts, 1)
    opened(accounts, 2)
    changed, pinned = accounts.find("i1"), accounts.find("i2")
    assert changed is not None
    assert pinned is not None
    changed.wake("other")
    pinned.pins += 1
    for seq in range(3, 9):
        opened(accounts, seq)
        assert accounts.find(f"i{seq}") is not None
        if seq == 5:
            assert accounts.find("i1") is None, "its changes are only in the store"
    assert accounts.find("i2") is pinned


@pytest.mark.behaviour("H-9")
async def test_an_account_stays_until_the_limits_it_reached_are_stored() -> None:
    store, accounts = open_store("sqlite::memory:"), cache(size=1)
    await store.open()
    log = Log(store, Threads(), SystemClock(), HubMetrics())
    unsaved = UnsavedCounts(log, lambda: 0.0)
    opened(accounts, 1)
    ledger = accounts.find("i1")
    assert ledger is not None
    unsaved.reached(ledger, "tokens")
    unsaved.reached(ledger, "usd")
    opened(accounts, 2)
    accounts.find("i2")
    assert accounts.find("i1") is ledger
    writing = asyncio.ensure_future(log.run())
    await log.write()
    assert ledger.saved == {"bot", "tokens", "usd"}
    log.stop()
    unsaved.reached(ledger, "wakes")
    assert "wakes" not in ledger.saved, "it goes with the next message instead"
    for seq in (3, 4):
        opened(accounts, seq)
        accounts.find(f"i{seq}")
    assert accounts.find("i1") is None
    await writing
    await store.close()
