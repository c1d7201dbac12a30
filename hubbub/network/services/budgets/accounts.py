"""The accounts that are at hand: of interactions that move, and openings that may come to.

Most interactions are one message that nobody follows up. Of those only what it takes to make an
account is kept, in a ring; accounts themselves are kept as long as something uses them, and then
while there is room. What is no longer here is loaded from the store.

Wakes of the day are written a little later, many together: a wake is a matter of microseconds, and
most messages make one, so that a record with each would cost more than the message. Where a day's
wakes are limited, they are written with their messages instead.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from hubbub.config.models import Budgets
from hubbub.ids import parse_interaction_id
from hubbub.network.log import Change, Log
from hubbub.network.ports import Store
from hubbub.network.queries import AccountOf, WakesAt
from hubbub.network.records import AccountChanged, Record
from hubbub.network.services.budgets.account import BudgetAccount
from hubbub.network.services.budgets.daily import day_of
from hubbub.network.stored import StoredSpending
from hubbub.network.threads import Threads
from hubbub.network.wakes import Decision
from hubbub.protocol.spending import LIMITS, LimitName

__all__ = ["BudgetAccounts", "Opening", "UnsavedCounts"]

Opening = tuple[int, str, bool, int, float, Sequence[Decision]]
"""Position, who opened it, whether that is a person, thread, when, whom it reached by name."""
_NOTHING: Opening = (0, "", False, 0, 0.0, ())


class BudgetAccounts:
    """Finds the account of an interaction, or loads it."""

    def __init__(
        self,
        store: Store,
        threads: Threads,
        budgets: Budgets,
        size: int = 4096,
        *,
        set_by_person: Callable[[str], bool] = lambda timer_of: False,
        moment: Callable[[float], float] = float,
    ):
        """`set_by_person` tells whether a timer of this participant counts as a person's word;
        `moment`, when a date is by the clock by which interactions grow old."""
        self._store, self._threads, self._size = store, threads, size
        self._set_by_person, self._moment = set_by_person, moment
        self._full, self._half = budgets, budgets.halved()
        self._ring: list[Opening] = [_NOTHING] * size
        self._ledgers: OrderedDict[int, BudgetAccount] = OrderedDict()

    def _timed(self, opening: Mapping[str, JsonValue]) -> bool:
        """Whether a timer of a person has set the message off."""
        timer_of = opening.get("timer_of")
        return isinstance(timer_of, str) and self._set_by_person(timer_of)

    def new(self, opened_by: str, thread_no: int, at: float, *, person: bool) -> BudgetAccount:
        """The account of an interaction that a message is about to open."""
        limits = self._full if person else self._half
        return BudgetAccount(0, opened_by, thread_no, at, limits, person=person)

    def opened(self, openings: Iterable[Opening]) -> None:
        """These messages have opened interactions."""
        for opening in openings:
            self._ring[opening[0] % self._size] = opening

    def keep(self, ledger: BudgetAccount) -> None:
        """An account is to be found from now on."""
        self._ledgers[ledger.seq] = ledger
        if len(self._ledgers) > self._size:
            self._let_go(ledger)

    def find(self, interaction: str) -> BudgetAccount | None:
        """The account, if it is at hand."""
        seq = parse_interaction_id(interaction) or 0
        ledger = self._ledgers.get(seq)
        if ledger is not None:
            self._ledgers.move_to_end(seq)
            return ledger
        slot = self._ring[seq % self._size]
        if slot[0] != seq or not seq:
            return None
        # The account lives on by itself: once it has moved, the opening alone would be too little.
        self._ring[seq % self._size] = _NOTHING
        _, opened_by, person, thread_no, at, decisions = slot
        woken = [decision.participant for decision in decisions if decision.reply is not None]
        return self._made(seq, opened_by, thread_no, at, woken, person=person)

    async def load(self, interaction: str) -> BudgetAccount | None:
        """The account, from the store if need be; None: there is no such interaction.

        Raises `StoreUnavailable`.
        """
        found = self.find(interaction)
        if found is not None:
            return found
        seq = parse_interaction_id(interaction) or 0
        body = await self._store.message(seq) if seq else None
        opening = json.loads(body) if body is not None else None
        if opening is None or opening["interaction_id"] != interaction:
            return None
        wakes = await self._store.read(WakesAt([seq]))
        row = await self._store.read(AccountOf(seq))
        found = self.find(interaction)
        if found is not None:  # somebody else has loaded it meanwhile
            return found
        sender, person = opening["sender_id"], opening["sender_kind"] == "human"
        ledger = self._made(
            seq,
            opening.get("timer_of") or opening.get("spoken_by") or sender,
            self._threads.ensure(opening["thread_id"]).no,
            self._moment(datetime.fromisoformat(opening["sent_at"]).timestamp()),
            [participant for (_, participant), wake in wakes.items() if wake.reply is not None],
            person=person or opening.get("spoken_by") is not None or self._timed(opening),
        )
        if row is not None:
            ledger.wakes += row.wakes
            ledger.turns, ledger.tokens_in, ledger.tokens_out = (
                row.turns,
                row.tokens_in,
                row.tokens_out,
            )
            ledger.usd = row.usd
            for agent in row.agents:
                ledger.agents.setdefault(agent, 1)
            ledger.reached = {limit for limit in LIMITS if limit in row.reached}
            ledger.saved |= {*row.agents, *row.reached}
        return ledger

    def _made(
        self,
        seq: int,
        opened_by: str,
        thread_no: int,
        at: float,
        woken: Sequence[str],
        *,
        person: bool,
    ) -> BudgetAccount:
        ledger = self.new(opened_by, thread_no, at, person=person)
        ledger.seq = seq
        for agent in woken:
            ledger.wake(agent)
        ledger.saved.update(woken)  # the deliveries of its message tell them
        self.keep(ledger)
        return ledger

    def _let_go(self, new: BudgetAccount) -> None:
        """Forget the account that was asked for longest ago and that nothing uses; the new one is
        just about to be used."""
        for seq, ledger in self._ledgers.items():
            if not ledger.pins and ledger is not new:
                del self._ledgers[seq]
                return


WRITE_AFTER_S = 1.0
"""Losing so much of a day's count of wakes to a crash changes no decision."""


class UnsavedCounts:
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
            return [AccountChanged(ledger.seq, reached=(limit,))]

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
