"""Which accounts are at hand, and which must be loaded."""

from __future__ import annotations

import pytest

from hubbub.config.models import Budgets
from hubbub.network.control.book import Book
from hubbub.network.store import open_store
from hubbub.network.threads import Threads
from hubbub.network.wakes import Decision, Reason


def book(size: int = 4) -> Book:
    return Book(open_store("sqlite::memory:"), Threads(), Budgets(), size)


def opened(accounts: Book, seq: int, *, woken: tuple[str, ...] = ("bot",)) -> None:
    decisions = [Decision(agent, Reason.DIRECT, "required") for agent in woken]
    asleep = [Decision("ann", Reason.OWN, None)]
    accounts.opened(seq, "ann", True, 1, 100.0, [*decisions, *asleep])


@pytest.mark.behaviour("H-9")
def test_an_account_is_made_of_its_opening() -> None:
    accounts = book()
    opened(accounts, 3, woken=("a", "b"))
    ledger = accounts.find("i3")
    assert ledger is not None
    assert (ledger.interaction, ledger.opened_by, ledger.wakes) == ("i3", "ann", 2)
    assert ledger.agents.keys() == {"a", "b"}
    assert accounts.find("i3") is ledger
    assert accounts.find("i4") is None
    assert accounts.find("nonsense") is None


@pytest.mark.behaviour("H-9")
def test_openings_long_ago_must_be_loaded() -> None:
    accounts = book()
    for seq in range(1, 6):
        opened(accounts, seq)
    assert accounts.find("i1") is None
    assert accounts.find("i2") is not None


@pytest.mark.behaviour("H-9")
def test_an_account_that_was_let_go_is_not_made_of_its_opening_again() -> None:
    accounts = book(size=4)
    opened(accounts, 1)
    moved = accounts.find("i1")
    assert moved is not None
    moved.wake("other")
    for seq in (2, 3, 4):
        opened(accounts, seq)
        assert accounts.find(f"i{seq}") is not None
    opened(accounts, 6)
    assert accounts.find("i6") is not None
    assert accounts.find("i1") is None, "what has moved since is in the store alone"


@pytest.mark.behaviour("H-9")
def test_an_account_in_use_stays() -> None:
    accounts = book(size=2)
    opened(accounts, 1)
    used = accounts.find("i1")
    assert used is not None
    used.pins += 1
    for seq in range(2, 9):
        opened(accounts, seq)
        assert accounts.find(f"i{seq}") is not None
    assert accounts.find("i1") is used
