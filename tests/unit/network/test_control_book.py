"""Which accounts are at hand, and which must be loaded."""

from __future__ import annotations

import pytest

from hubbub.config.models import Budgets
from hubbub.network.services.budgets.accounts import BudgetAccounts
from hubbub.network.store import open_store
from hubbub.network.threads import Threads
from hubbub.network.wakes import Decision, Reason


def book(size: int = 4) -> BudgetAccounts:
    return BudgetAccounts(open_store("sqlite::memory:"), Threads(), Budgets(), size)


def opened(accounts: BudgetAccounts, seq: int, *, woken: tuple[str, ...] = ("bot",)) -> None:
    decisions = [Decision(agent, Reason.DIRECT, "required") for agent in woken]
    asleep = [Decision("ann", Reason.OWN, None)]
    accounts.opened([(seq, "ann", True, 1, 100.0, [*decisions, *asleep])])


@pytest.mark.behaviour("H-9")
def test_an_account_is_made_of_its_opening_while_that_is_at_hand() -> None:
    accounts = book()
    for seq in range(1, 6):
        opened(accounts, seq, woken=("a", "b"))
    assert accounts.find("i1") is None, "an opening long ago must be loaded"
    ledger = accounts.find("i3")
    assert ledger is not None
    assert (ledger.interaction, ledger.opened_by, ledger.wakes) == ("i3", "ann", 2)
    assert ledger.agents.keys() == {"a", "b"}
    assert accounts.find("i3") is ledger
    assert (accounts.find("i9"), accounts.find("nonsense")) == (None, None)


@pytest.mark.behaviour("H-9")
def test_an_account_in_use_stays_and_another_that_was_let_go_is_not_made_anew() -> None:
    accounts = book(size=4)
    opened(accounts, 1)
    opened(accounts, 2)
    moved, used = accounts.find("i1"), accounts.find("i2")
    assert moved is not None
    assert used is not None
    moved.wake("other")
    used.pins += 1
    for seq in range(3, 9):
        opened(accounts, seq)
        assert accounts.find(f"i{seq}") is not None
        if seq == 5:
            assert accounts.find("i1") is None, "what has moved since is in the store alone"
    assert accounts.find("i2") is used
