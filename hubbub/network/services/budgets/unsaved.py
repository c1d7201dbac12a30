"""Wakes of the day that are written a little later, many together.

A wake is a matter of microseconds, and most messages make one: a record with each would cost more
than the message. Where a day's wakes are limited, they are written with their messages instead.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from hubbub.network.log import Change, Log
from hubbub.network.records import LedgerMoved, Record
from hubbub.network.services.budgets.account import BudgetAccount
from hubbub.network.services.budgets.daily import day_of
from hubbub.network.stored import StoredSpending
from hubbub.protocol.spending import LimitName

__all__ = ["Unsaved"]

WRITE_AFTER_S = 1.0
"""Losing so much of a day's count of wakes to a crash changes no decision."""


class Unsaved:
    """Counts, and hands what has gathered to the log."""

    def __init__(self, log: Log, now: Callable[[], float]):
        self._log, self._now = log, now
        self._wakes: Counter[tuple[str, int]] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, wakes: Sequence[tuple[str, int]]) -> None:
        """Count wakes: of this agent, in the thread with this number."""
        self._wakes.update(wakes)
        if wakes and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_AFTER_S, self.flush)

    def flush(self) -> None:
        """Hand what has gathered to the log."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wakes, self._wakes = self._wakes, Counter()
        day = day_of(self._now())
        spent = [StoredSpending(day, agent, no, wakes=n) for (agent, no), n in wakes.items()]
        if not spent:
            return

        def records(head: int) -> Sequence[Record]:
            return spent

        def done(error: Exception | None) -> None:
            if error is not None:
                self._wakes.update(wakes)

        self._log.change(Change(records, done))

    def reached(self, ledger: BudgetAccount, limit: LimitName) -> None:
        """Write that the interaction has run into the limit, as soon as may be."""

        def records(head: int) -> Sequence[Record]:
            return [LedgerMoved(ledger.seq, reached=(limit,))]

        def done(error: Exception | None) -> None:
            ledger.pins -= 1
            if error is None:
                ledger.saved.add(limit)

        ledger.pins += 1
        self._log.change(Change(records, done))

    async def saved(self) -> None:
        """Write what has gathered, and wait until it is in the store. Raises `StoreUnavailable`."""
        self.flush()
        await self._log.write()
