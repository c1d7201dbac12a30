"""What turns cost: steps that are counted, and what is reserved for questions under way.

    reserve_budget(key, estimate) --> reserved --> record_step(settles: key) --> counted
                                     |
                                     +--> the turn ends, or its agent goes: given back

A step may be recorded again under its number, in place of the one before: the difference counts.
Everything counts at once, in memory, and is taken back where the store refuses the step; what is
written is always the difference to what was written before, whatever failed between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from weakref import WeakValueDictionary

from hubbub.errors import OperationError
from hubbub.mods.operation import over_limit
from hubbub.network.ports import Store
from hubbub.network.queries import TurnById
from hubbub.network.records import AccountChanged, Record
from hubbub.network.running_turns import EndedTurn
from hubbub.network.services.budgets.account import (
    EPSILON,
    BudgetAccount,
    Charge,
    Cost,
    Estimate,
    TurnAccount,
    Version,
    standing,
)
from hubbub.network.services.budgets.accounts import BudgetAccounts
from hubbub.network.services.budgets.daily import Daily, ReachedLimit
from hubbub.network.stored import StoredSpending
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.spending import LimitName, RemainingBudget, Reservation, ReserveBudget
from hubbub.protocol.turns import Step

__all__ = ["TurnAccounts"]

LITTLE = 0.2
"""The part of a limit from which on little is left."""
MOST_RESERVATIONS = 256
"""Questions of one turn that are under way at the same time."""

_TOLD: tuple[LimitName, ...] = ("wakes", "wall_clock", "tokens", "usd")
"""Limits of which models are told when little is left."""


class TurnAccounts:
    """The accounts of the turns that run."""

    def __init__(
        self,
        store: Store,
        book: BudgetAccounts,
        daily: Daily,
        now: Callable[[], float],
        steady: Callable[[], float],
        reach: Callable[[BudgetAccount, LimitName], None],
        spent_up: Callable[[ReachedLimit, int], None],
    ):
        """`now` is the time of day, `steady` that by which interactions grow old. `reach` and
        `spent_up` are told of limits (and the thread) that stood in the way."""
        self._store, self._book, self._daily, self._now = store, book, daily, now
        self._steady = steady
        self._reach, self._spent_up = reach, spent_up
        self._turns: dict[str, TurnAccount] = {}
        self._loading = WeakValueDictionary[str, asyncio.Lock]()

    def find(self, turn: str) -> TurnAccount | None:
        """The account of a turn that runs, if it is at hand."""
        return self._turns.get(turn)

    def is_loading(self, turn: str) -> bool:
        """Whether somebody waits for the account of the turn."""
        return turn in self._loading

    def loading(self, turn: str) -> asyncio.Lock:
        """To be held while the account of a turn is looked for: of what an agent asks for in a row
        nothing overtakes what it asked before, however long the store takes for each."""
        return self._loading.setdefault(turn, asyncio.Lock())

    def runs(self, ledger: BudgetAccount) -> bool:
        """Whether a turn runs that is charged to this account."""
        return any(account.ledger is ledger and account.begun for account in self._turns.values())

    async def load(self, turn: str, agent: str, thread_no: int, interaction: str) -> TurnAccount:
        """The account of the turn, which belongs to this interaction; of one that has ended an
        account that nobody finds again.

        Raises `OperationError` and `StoreUnavailable`.
        """
        known = self._turns.get(turn)
        if known is not None:
            return known
        stored = await self._store.read(TurnById(turn))
        ledger = await self._book.load(interaction)
        known = self._turns.get(turn)
        if known is not None:  # somebody else has loaded it meanwhile
            return known
        if ledger is None:
            text = f"there is no interaction {interaction}"
            raise OperationError(ErrorCode.UNKNOWN_INTERACTION, text)
        account = TurnAccount(turn, agent, thread_no, ledger)
        if stored is not None:
            account.begun = True
            for step in map(Step.model_validate_json, stored.steps):
                account.steps[step.n] = Version(_cost(step), None)
        account.over = stored is not None and stored.ended_at is not None
        if not account.over:
            ledger.pins += 1
            self._turns[turn] = account
        return account

    # Counting -----------------------------------------------------------------------------

    def begin(self, account: TurnAccount) -> Charge:
        """Count the turn, once."""
        ledger = account.ledger
        if account.begun:
            return Charge(tuple, lambda: None, ledger)
        account.begun = True
        ledger.turns += 1

        def records() -> Sequence[Record]:
            day = self._daily.today(self._now())
            spent = StoredSpending(day, account.agent, account.thread_no, turns=1)
            return [AccountChanged(ledger.seq, turns=1), spent]

        def failed() -> None:
            account.begun = False
            ledger.turns -= 1

        return Charge(records, failed, ledger)

    def step(self, account: TurnAccount, step: Step, settles: Collection[str]) -> Charge:
        """Count a step in place of its reservations, and of what was recorded under its number."""
        version = Version(_cost(step), account.steps.get(step.n))
        self._spend(account, version.cost.minus(standing(version.before)))
        account.steps[step.n] = version
        settled = {key: account.reservations[key] for key in settles if key in account.reservations}
        for key in settled:
            self._release(account, key)

        def records() -> Sequence[Record]:
            more = version.cost.minus(standing(version.before))
            return self._spent(account, more)

        def failed() -> None:
            counted = standing(account.steps[step.n])
            version.failed = True
            self._spend(account, standing(account.steps[step.n]).minus(counted))
            for key, estimate in settled.items():  # the step is to be recorded again
                if not account.over and key not in account.reservations:
                    self._hold(account, key, estimate)

        return Charge(records, failed, account.ledger)

    def _spend(self, account: TurnAccount, cost: Cost) -> None:
        self._daily.today(self._now())
        account.ledger.spend(cost)
        self._daily.spend(account.agent, account.thread_no, cost)

    def _spent(self, account: TurnAccount, cost: Cost) -> Sequence[Record]:
        if cost == Cost():
            return ()
        day = self._daily.today(self._now())
        tokens_in, tokens_out, usd = cost
        moved = AccountChanged(
            account.ledger.seq, tokens_in=tokens_in, tokens_out=tokens_out, usd=usd
        )
        spent = StoredSpending(
            day,
            account.agent,
            account.thread_no,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            usd=usd,
        )
        return [moved, spent]

    # Reservations -------------------------------------------------------------------------------

    def reserve(self, account: TurnAccount, args: ReserveBudget) -> Reservation:
        """Reserve an estimate. Raises `OperationError` if that is more than is left."""
        self._daily.today(self._now())
        before = account.reservations.get(args.key)
        if before is not None:
            self._release(account, args.key)
        elif len(account.reservations) >= MOST_RESERVATIONS:
            raise over_limit(f"at most {MOST_RESERVATIONS} reservations of one turn")
        try:
            self._check(account, args)
        except OperationError:
            if before is not None:
                self._hold(account, args.key, before)
            raise
        self._hold(account, args.key, Estimate(args.tokens, args.usd))
        limits = account.ledger.limits
        return Reservation(
            turn=args.turn,
            key=args.key,
            low=tuple(self._low(account)),
            limited=self._daily.limited or limits.tokens is not None or limits.usd is not None,
        )

    def _check(self, account: TurnAccount, args: ReserveBudget) -> None:
        ledger = account.ledger
        limits = ledger.too_dear(args.tokens, args.usd)
        days = self._daily.too_dear(account.agent, account.thread_no, args.tokens, args.usd)
        if not limits and not days:
            return
        used, budget = ledger.used(self._steady()), ledger.budget()
        left = [
            RemainingBudget(limit=limit, whose="interaction", used=used[limit], of=budget[limit])
            for limit in limits
        ]
        left += [_left(reached) for reached in days]
        for limit in limits:
            self._reach(ledger, limit)
        for reached in days:
            self._spent_up(reached, account.thread_no)
        told = "; ".join(map(_told, left))
        raise OperationError(
            ErrorCode.BUDGET_EXHAUSTED,
            f"too little is left for this question ({told})",
            details={"left": [each.model_dump(mode="json") for each in left]},
        )

    def _low(self, account: TurnAccount) -> list[RemainingBudget]:
        ledger = account.ledger
        used, budget = ledger.used(self._steady()), ledger.budget()
        found = [
            RemainingBudget(limit=limit, whose="interaction", used=used[limit], of=budget[limit])
            for limit in _TOLD
            if limit in used
        ]
        found += map(_left, self._daily.used(account.agent, account.thread_no))
        return [each for each in found if each.of - each.used < LITTLE * each.of - EPSILON]

    def _hold(self, account: TurnAccount, key: str, estimate: Estimate) -> None:
        account.reservations[key] = estimate
        account.ledger.reserved_tokens += estimate.tokens
        account.ledger.reserved_usd += estimate.usd
        self._daily.reserve(account.agent, account.thread_no, *estimate)

    def _release(self, account: TurnAccount, key: str) -> None:
        tokens, usd = account.reservations.pop(key)
        account.ledger.reserved_tokens -= tokens
        account.ledger.reserved_usd = max(0.0, account.ledger.reserved_usd - usd)
        self._daily.reserve(account.agent, account.thread_no, -tokens, -usd)

    # Ends ---------------------------------------------------------------------------------

    def over(self, turn: str) -> None:
        """The turn has ended: what it had reserved is free."""
        account = self._turns.pop(turn, None)
        if account is not None:
            account.over = True
            account.ledger.pins -= 1
            self._release_all(account)

    def heard(self, ended: Iterable[EndedTurn]) -> None:
        """These turns were ended in their agents' place."""
        for each in ended:
            self.over(each.turn)

    def left(self, agent: str) -> None:
        """The agent is gone: whatever it asked for, it asks no more."""
        for account in self._turns.values():
            if account.agent == agent:
                self._release_all(account)

    def _release_all(self, account: TurnAccount) -> None:
        for key in list(account.reservations):
            self._release(account, key)


def _cost(step: Step) -> Cost:
    return Cost(step.tokens_in, step.tokens_out, step.cost_usd or 0.0)


def _left(reached: ReachedLimit) -> RemainingBudget:
    return RemainingBudget(
        limit=reached.limit, whose=reached.whose, used=reached.used, of=reached.of
    )


def _told(left: RemainingBudget) -> str:
    day = "" if left.whose == "interaction" else " today"
    form = "${:.4g}" if left.limit == "usd" else "{:,.0f}"
    used, of = form.format(left.used), form.format(left.of)
    return f"{left.limit} of the {left.whose}{day}: {used} of {of} used or reserved"
