"""A cache of accounts of active interactions, and of openings that may become active.

Most interactions are a single message without a follow-up. For those only the data to build an
account is cached, in a ring. Accounts stay in memory while they are in use, and then while there is
room. Others are loaded from the store.

Daily wake counts are written in groups, a little later: a wake takes microseconds and most messages
cause one, so a record for each would cost more than the message. If a daily limit on wakes is set,
they are written with their messages instead.
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
"""Position, opener, whether that is a person, thread, time, and decisions."""
_NOTHING: Opening = (0, "", False, 0, 0.0, ())


class BudgetAccounts:
    """Looks up the account of an interaction, or loads it."""

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
        """`set_by_person` returns whether a timer of this participant counts as a person's message;
        `moment` converts a timestamp to the clock for the age of interactions."""
        self._store, self._threads, self._size = store, threads, size
        self._set_by_person, self._moment = set_by_person, moment
        self._full, self._half = budgets, budgets.halved()
        self._ring: list[Opening] = [_NOTHING] * size
        self._ledgers: OrderedDict[int, BudgetAccount] = OrderedDict()

    def _timed(self, opening: Mapping[str, JsonValue]) -> bool:
        """Whether a person's timer sent the message."""
        timer_of = opening.get("timer_of")
        return isinstance(timer_of, str) and self._set_by_person(timer_of)

    def new(self, opened_by: str, thread_no: int, at: float, *, person: bool) -> BudgetAccount:
        """The account of an interaction that a message is about to open."""
        limits = self._full if person else self._half
        return BudgetAccount(0, opened_by, thread_no, at, limits, person=person)

    def opened(self, openings: Iterable[Opening]) -> None:
        """Cache the openings of new interactions."""
        for opening in openings:
            self._ring[opening[0] % self._size] = opening

    def keep(self, ledger: BudgetAccount) -> None:
        """Cache an account."""
        self._ledgers[ledger.seq] = ledger
        if len(self._ledgers) > self._size:
            self._evict(ledger)

    def find(self, interaction: str) -> BudgetAccount | None:
        """The account, if it is cached."""
        seq = parse_interaction_id(interaction) or 0
        ledger = self._ledgers.get(seq)
        if ledger is not None:
            self._ledgers.move_to_end(seq)
            return ledger
        slot = self._ring[seq % self._size]
        if slot[0] != seq or not seq:
            return None
        # From now on the account is cached: once it changes, the opening alone is not enough.
        self._ring[seq % self._size] = _NOTHING
        _, opened_by, person, thread_no, at, decisions = slot
        woken = [decision.participant for decision in decisions if decision.reply is not None]
        return self._create(seq, opened_by, thread_no, at, woken, person=person)

    async def load(self, interaction: str) -> BudgetAccount | None:
        """The account, loaded from the store if necessary; None if there is no such interaction.

        Raises `StoreUnavailable`.
        """
        cached = self.find(interaction)
        if cached is not None:
            return cached
        seq = parse_interaction_id(interaction) or 0
        body = await self._store.message(seq) if seq else None
        opening = json.loads(body) if body is not None else None
        if opening is None or opening["interaction_id"] != interaction:
            return None
        wakes = await self._store.read(WakesAt([seq]))
        row = await self._store.read(AccountOf(seq))
        cached = self.find(interaction)
        if cached is not None:  # loaded by another task meanwhile
            return cached
        sender, person = opening["sender_id"], opening["sender_kind"] == "human"
        ledger = self._create(
            seq,
            opening.get("timer_of") or opening.get("sent_by") or sender,
            self._threads.ensure(opening["thread_id"]).no,
            self._moment(datetime.fromisoformat(opening["sent_at"]).timestamp()),
            [participant for (_, participant), wake in wakes.items() if wake.reply is not None],
            person=person or opening.get("sent_by") is not None or self._timed(opening),
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

    def _create(
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
        ledger.saved.update(woken)  # stored as deliveries of its message
        self.keep(ledger)
        return ledger

    def _evict(self, new: BudgetAccount) -> None:
        """Drop the least recently used account that is not in use, other than the new one."""
        for seq, ledger in self._ledgers.items():
            if not ledger.pins and ledger is not new:
                del self._ledgers[seq]
                return


WRITE_AFTER_S = 1.0
"""Seconds of wake counts that a crash can lose, which changes no decision."""


class UnsavedCounts:
    """Collects counts of wakes, and writes them to the log in groups."""

    def __init__(self, log: Log, now: Callable[[], float]):
        self._log, self._now = log, now
        self._wakes: Counter[tuple[str, int]] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, wakes: Sequence[tuple[str, int]]) -> None:
        """Count wakes, given as agent and thread number."""
        self._wakes.update(wakes)
        if wakes and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_AFTER_S, self.flush)

    def flush(self) -> None:
        """Queue the collected counts for writing."""
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
        """Queue a record that the interaction reached the limit."""

        def records(head: int) -> Sequence[Record]:
            return [AccountChanged(ledger.seq, reached=(limit,))]

        def done(error: Exception | None) -> None:
            ledger.pins -= 1
            if error is None:
                ledger.saved.add(limit)

        ledger.pins += 1
        self._log.change(Change(records, done))

    async def saved(self) -> None:
        """Write the collected counts, and wait for the commit. Raises `StoreUnavailable`."""
        self.flush()
        await self._log.write()
