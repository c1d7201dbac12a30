"""One turn's account: what is counted of it, what it has reserved, what is on its way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hubbub.network.records import Record
from hubbub.network.services.budgets.account import BudgetAccount, Cost

__all__ = ["Charge", "Estimate", "TurnAccount", "Version", "standing"]


class Estimate(NamedTuple):
    tokens: int
    usd: float


class Version:
    """A step as it was recorded at some time, and what it replaced."""

    __slots__ = ("before", "cost", "failed")

    def __init__(self, cost: Cost, before: Version | None):
        self.cost, self.before, self.failed = cost, before, False


def standing(version: Version | None) -> Cost:
    """What the latest version of a step cost that the store has not refused."""
    while version is not None and version.failed:
        version = version.before
    return version.cost if version is not None else Cost()


class TurnAccount:
    """A turn that runs: whose account it is charged to, and what of it is counted."""

    __slots__ = ("agent", "begun", "ledger", "over", "reservations", "steps", "thread_no", "turn")

    def __init__(self, turn: str, agent: str, thread_no: int, ledger: BudgetAccount):
        self.turn, self.agent, self.thread_no, self.ledger = turn, agent, thread_no, ledger
        self.steps: dict[int, Version] = {}
        self.reservations: dict[str, Estimate] = {}
        self.begun = False
        """Whether it is counted as a turn."""
        self.over = False


class Charge:
    """Something of a turn on its way to the store: what is written with it, and what then."""

    def __init__(
        self,
        records: Callable[[], Sequence[Record]],
        failed: Callable[[], None],
        ledger: BudgetAccount,
    ):
        self._records, self._failed, self._ledger = records, failed, ledger
        self._durable = False
        ledger.pins += 1

    def records(self) -> Sequence[Record]:
        """To be asked for when the batch is formed."""
        return self._records()

    def applied(self) -> None:
        self._durable = True

    def released(self) -> None:
        self._ledger.pins -= 1
        if not self._durable:
            self._failed()
